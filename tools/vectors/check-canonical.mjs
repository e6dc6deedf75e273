// Recomputes canonical JSON vectors without sharing a line with the Python side.
//
//   node tools/vectors/check-canonical.mjs tests/vectors/canonical/*.json
//
// A vector is {name, input, canonical, digest}, or {name, input, path} for a text that must be refused there; `bytes`
// (base64) takes the place of `input` where the text isn't UTF-8. Exits 1 on any difference, 2 when used wrongly.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

class Refused extends Error {
  constructor(message, path) {
    super(message);
    this.path = path;
  }
}

const member = (path, key) =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(key) ? `${path}.${key}` : `${path}[${ascii(JSON.stringify(key))}]`;

const ascii = (text) =>
  text.replace(/[\u007f-\uffff]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"));

// Objects become arrays of pairs, because a JavaScript object reorders keys that look like integers.
class Members {
  constructor(pairs) {
    this.pairs = pairs;
  }
}

function read(text) {
  let at = 0;
  if (text.charCodeAt(0) === 0xfeff) throw new Refused("byte order mark", "byte 0");

  const fail = (message) => {
    const before = text.slice(0, at).split("\n");
    throw new Refused(message, `line ${before.length} column ${[...before.at(-1)].length + 1}`);
  };
  const space = () => {
    while (" \t\n\r".includes(text[at] ?? "x")) at += 1;
  };
  const match = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return found?.[0];
  };

  const string = (path) => {
    const source = match(/"(?:[^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/y);
    if (source === undefined) fail("a string was expected");
    const value = JSON.parse(source);
    const place = typeof path === "function" ? path(value) : path;
    if (!value.isWellFormed()) throw new Refused("lone surrogate", place);
    return value;
  };

  const value = (path) => {
    space();
    if (text[at] === '"') return string(path);
    if (text[at] === "{") {
      at += 1;
      const pairs = [];
      const seen = new Set();
      space();
      if (text[at] === "}") return (at += 1), new Members(pairs);
      for (;;) {
        space();
        const key = string((name) => member(path, name));
        const place = member(path, key);
        if (seen.has(key)) throw new Refused("duplicate key", place);
        seen.add(key);
        space();
        if (text[at++] !== ":") fail("a colon was expected");
        pairs.push([key, value(place)]);
        space();
        const next = text[at++];
        if (next === "}") return new Members(pairs);
        if (next !== ",") fail("a comma was expected");
      }
    }
    if (text[at] === "[") {
      at += 1;
      const items = [];
      space();
      if (text[at] === "]") return (at += 1), items;
      for (;;) {
        items.push(value(`${path}[${items.length}]`));
        space();
        const next = text[at++];
        if (next === "]") return items;
        if (next !== ",") fail("a comma was expected");
      }
    }
    if (match(/-?Infinity|NaN/y)) throw new Refused("not a number", path);
    const word = match(/true|false|null/y);
    if (word) return JSON.parse(word);
    const number = match(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    if (number === undefined) fail("a value was expected");
    const double = Number(number);
    if (!Number.isFinite(double)) throw new Refused("overflow", path);
    const whole = /^-?[0-9]+$/.test(number);
    if (whole && !Number.isSafeInteger(double) && String(double) !== number) throw new Refused("inexact", path);
    return double;
  };

  const found = value("$");
  space();
  if (at !== text.length) fail("more follows");
  return found;
}

function write(value) {
  if (value instanceof Members) {
    // Comparing strings with < compares UTF-16 units.
    const sorted = [...value.pairs].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${sorted.map(([key, item]) => `${JSON.stringify(key)}:${write(item)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  return JSON.stringify(value);
}

function decode(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Refused("not UTF-8", "bytes");
  }
}

function check(vector) {
  const wanted = vector.path ?? vector.canonical;
  let got;
  try {
    const text = vector.bytes === undefined ? vector.input : decode(Buffer.from(vector.bytes, "base64"));
    const bytes = Buffer.from(write(read(text)), "utf-8");
    got = bytes.toString("utf-8");
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    if (vector.path !== undefined) return `accepted as ${got}, must be refused at ${vector.path}`;
    if (digest !== vector.digest) return `digest ${digest}, expected ${vector.digest} (canonical ${got})`;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (vector.path === undefined) return `refused at ${error.path}: ${error.message}`;
    // Where bytes stop being text, two decoders name the place differently.
    if (error.path === "bytes") return vector.path.startsWith("byte ") ? undefined : `refused as bytes`;
    got = error.path;
  }
  return got === wanted ? undefined : `got ${got}, expected ${wanted}`;
}

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error("usage: node check-canonical.mjs VECTORS.json …");
  process.exit(2);
}
let seen = 0;
let wrong = 0;
for (const file of files) {
  for (const vector of JSON.parse(readFileSync(file, "utf-8"))) {
    seen += 1;
    const difference = check(vector);
    if (difference !== undefined) {
      wrong += 1;
      console.error(`${file}: ${vector.name}: ${difference}`);
    }
  }
}
console.log(`${seen} vectors, ${wrong} different`);
process.exit(wrong > 0 || seen === 0 ? 1 : 0);
