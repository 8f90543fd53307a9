import type { Config } from '../../contract/config/config.ts';
import type { FieldError } from '../field-error.ts';

/** The origin of pages without an own origin, as browsers serialize it. */
const OPAQUE = 'null';

/** The origin of local files in apps such as Electron's and Cordova's. Browsers send `null` for such pages. */
const FILE = 'file://';

/** An origin of another scheme than http: `app://obsidian.md`. Browsers send its host as in the page's address. */
const OTHER = /^([a-z][a-z0-9+.-]*):\/\/([\w.~!$&'()+,;=%-]+|\[[\da-f:.]+\])(?::([1-9]\d{0,4}))?$/;

/** Schemes of addresses whose pages have no own origin. */
const WITHOUT_ORIGIN = /^(?:data|blob|about|javascript):/i;

/**
 * Finds entries of `cors_origins` that no browser sends, by the grammar of RFC 6454. Origins are compared exactly, so
 * such an entry would never match. Every scheme is accepted, because apps and extensions define their own.
 */
export function originErrors({ cors_origins: origins }: Config): FieldError[] {
  return origins.flatMap((origin, index) => {
    const message = problemOf(origin);
    return message === null ? [] : [{ path: `cors_origins[${index}]`, message }];
  });
}

/** Warns of `null`, which pages of any site can send, and of `file://`, which pages of any app can send. */
export function originWarnings({ cors_origins: origins }: Config): string[] {
  const warnings: ReadonlyMap<string, string> = new Map([
    [OPAQUE, NULL_WARNING],
    [FILE, FILE_WARNING],
  ]);
  return origins.flatMap((origin) => warnings.get(origin) ?? []);
}

const NULL_WARNING =
  '`cors_origins` lists `null`, which is the origin of local files, `data:` addresses and sandboxed frames. Any web page can open a ' +
  'sandboxed frame, so pages of all sites may call Headgate from a browser that reaches it, including upstreams that need ' +
  'no key. Serve your page from an origin of its own, and list that instead.';

const FILE_WARNING =
  "`cors_origins` lists `file://`, which the pages of all apps send that load them from local files, such as Electron's. If " +
  'possible, give the pages of your app their own scheme, and list that instead, as in `app://my-app`.';

/** Returns why no browser sends this origin, and what to write instead. null if one may send it. */
function problemOf(origin: string): string | null {
  if (origin === OPAQUE || origin === FILE) return null;
  if (origin.includes('*')) {
    return 'has a wildcard; list each origin, as in https://app.example.com';
  }
  if (/^file:/i.test(origin)) {
    return 'is not what apps or browsers send for local files; write `file://` for pages of an app, or `null` for pages in a browser';
  }
  if (WITHOUT_ORIGIN.test(origin)) {
    return 'is never an origin, because browsers send null for such pages; write `null` to allow all pages without an origin';
  }
  if (/[\s,]/.test(origin.trim())) {
    return 'contains a comma or white space; list each origin on its own, as in ["https://app.example.com", "app://obsidian.md"]';
  }
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(origin)) {
    return 'expected a scheme, a host and optionally a port, as in https://app.example.com or app://obsidian.md';
  }
  return /^(?:https?|wss?):/i.test(origin) ? problemOfWeb(origin) : problemOfOther(origin);
}

/** Browsers send http origins in canonical form: lower case, ASCII, without the default port. */
function problemOfWeb(origin: string): string | null {
  const text = origin.replace(/^ws/i, 'http');
  if (!URL.canParse(text)) {
    return 'has no valid host; expected an origin like https://app.example.com';
  }
  const { origin: sent, hostname } = new URL(text);
  if (sent === origin) return null;
  return hostname === '' ? 'has no host' : `is not as browsers send it; write ${sent}`;
}

function problemOfOther(origin: string): string | null {
  const port = OTHER.exec(origin)?.[3] ?? '1';
  if (OTHER.test(origin) && Number(port) <= 65_535) return null;
  const [, scheme = '', rest = ''] = /^([^:]+):\/\/([^/?#\\]*)/.exec(origin) ?? [];
  const sent = `${scheme.toLowerCase()}://${rest.slice(rest.lastIndexOf('@') + 1)}`;
  const isOne = sent !== origin && OTHER.test(sent);
  return isOne
    ? `is not as browsers send it; write ${sent}`
    : 'has no valid host or port; expected an origin like app://obsidian.md or chrome-extension://abcdefghijklmnop';
}
