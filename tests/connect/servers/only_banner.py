print("Usage: only_banner [options]", flush=True)
