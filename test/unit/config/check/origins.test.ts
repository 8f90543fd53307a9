// Origins whose pages may call: any that browsers send, compared exactly, and an error that says what to write for others.
import { describe, expect, it } from 'vitest';
import { originErrors, originWarnings } from '../../../../src/config/check/access.ts';
import { configSchema } from '../../../../src/contract/config/config.ts';

const listing = (...cors_origins: string[]) => configSchema.parse({ cors_origins });

const messageOf = (origin: string): string | undefined => originErrors(listing(origin))[0]?.message;

it.each([
  'https://app.example.com',
  'https://app.example.com:8443',
  'http://localhost:3000',
  'http://127.0.0.1:5173',
  'http://[::1]:5173',
  'https://xn--bcher-kva.example',
  'http://tauri.localhost',
  'app://obsidian.md',
  'app://.',
  'capacitor://localhost',
  'ionic://localhost',
  'tauri://localhost',
  'chrome-extension://abcdefghijklmnopabcdefghijklmnop',
  'moz-extension://2d05f1c6-8b6c-4e0f-9a3a-0f5c0b7f1b2e',
  'safari-web-extension://E3449EA7-EC25-4696-8E6F-CC5D1D9C4A7B',
  'vscode-webview://0f1l2nrs9h4jm3r4qvmqqqn3bqj2b8qfj1q1c6n2s9d5i3t7k8m0',
  'vscode-file://vscode-app',
  'my-app+beta.2://pages.internal:8080',
  'null',
  'file://',
])('%s is accepted', (origin) => {
  expect(originErrors(listing(origin))).toEqual([]);
});

it.each([
  ['https://app.example.com/', 'https://app.example.com'],
  ['https://app.example.com/chat?a=b#c', 'https://app.example.com'],
  ['https://user:secret@app.example.com', 'https://app.example.com'],
  ['https://app.example.com:443', 'https://app.example.com'],
  ['http://app.example.com:80', 'http://app.example.com'],
  ['https://App.Example.com', 'https://app.example.com'],
  ['HTTPS://app.example.com', 'https://app.example.com'],
  ['https://bücher.example', 'https://xn--bcher-kva.example'],
  ['http://127.1:5173', 'http://127.0.0.1:5173'],
  ['wss://app.example.com', 'https://app.example.com'],
  ['app://obsidian.md/', 'app://obsidian.md'],
  ['capacitor://localhost/index.html', 'capacitor://localhost'],
  ['APP://obsidian.md', 'app://obsidian.md'],
  ['app://user:secret@obsidian.md/path', 'app://obsidian.md'],
])('for %s the error says to write %s', (origin, sent) => {
  expect(messageOf(origin)).toBe(`is not as browsers send it; write ${sent}`);
});

it.each([
  ['*', 'has a wildcard'],
  ['https://*.example.com', 'has a wildcard'],
  ['file:///home/me/page.html', 'write `file://` for pages of an app, or `null`'],
  ['https://a.example,https://b.example', 'list each origin on its own'],
  ['data:text/html,x', 'write `null`'],
  ['app.example.com', 'expected a scheme'],
  ['localhost:3000', 'expected a scheme'],
  ['//app.example.com', 'expected a scheme'],
  ['NULL', 'expected a scheme'],
  [' https://app.example.com', 'expected a scheme'],
  ['https://', 'no valid host'],
  ['https://a b', 'white space'],
  ['https://app.example.com:99999', 'no valid host'],
  ['app://', 'no valid host'],
  ['app://host:99999', 'no valid host or port'],
  ['app://host:080', 'no valid host or port'],
  ['app://hö.st', 'no valid host'],
  ['app://a, app://b', 'list each origin on its own'],
])('%s is refused: %s', (origin, message) => {
  expect(messageOf(origin)).toContain(message);
});

it('an error names its place', () => {
  const errors = originErrors(listing('app://obsidian.md', 'app://obsidian.md/'));
  expect(errors.map(({ path }) => path)).toEqual(['cors_origins[1]']);
});

describe('null', () => {
  it('is accepted with a warning about pages of all sites', () => {
    expect(originWarnings(listing('app://obsidian.md', 'null'))).toEqual([
      expect.stringContaining('sandboxed frame'),
    ]);
  });

  it('like file://, the origin of pages of all apps with local files, has a warning', () => {
    expect(originWarnings(listing('file://'))).toEqual([expect.stringContaining('file://')]);
  });

  it('brings no warning where it is not listed', () => {
    expect(originWarnings(listing('app://obsidian.md'))).toEqual([]);
  });
});
