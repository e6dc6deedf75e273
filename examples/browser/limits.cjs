// An init page for @playwright/mcp (`--init-page limits.cjs`): what a server promised and doesn't send has a limit.
// At the limit it is given up, and the call that is running, or the next one, fails and says so. The tab stays as it was.
// PAGE_LIMIT_MS: milliseconds; keep it below the server's own limit for an act (`--timeout-action`, 5000).
const LIMIT = Number(process.env.PAGE_LIMIT_MS ?? 4000);

exports.default = async ({ page }) => {
  const session = await page.context().newCDPSession(page);
  const timers = new Map();
  const done = it => {
    clearTimeout(timers.get(it));
    timers.delete(it);
  };
  // What is thrown here, nobody catches: that is what the server reports.
  const giveUp = (it, how, words) => {
    timers.set(it, setTimeout(async () => {
      timers.delete(it);
      await how();
      throw new Error(words);
    }, LIMIT));
  };

  // Before the first bytes have shown whether it is a page or a download, nothing else can be asked of the tab.
  page.on('request', request => {
    if (request.isNavigationRequest() && request.frame() === page.mainFrame())
      giveUp(request, () => session.send('Page.stopLoading'), `${request.url()} stalled: stopped after ${LIMIT} ms`);
  });
  page.on('response', response => done(response.request()));
  page.on('requestfailed', done);

  page.on('download', download => {
    const words = `the download of ${download.suggestedFilename()} stalled: cancelled after ${LIMIT} ms`;
    giveUp(download, () => download.cancel(), words);
    download.failure().finally(() => done(download));
  });

  page.on('close', () => [...timers.keys()].forEach(done));
};
