import { TOKEN_ACTOR } from '../../contract/config/keys.ts';
import type { Config, GroupConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { namesUpstreams, upstreamsOf } from '../../routing/group-match.ts';
import { compileGlobs } from '../../routing/glob.ts';
import { allowsLeases, LEASE_USAGE, mayReportUsage } from '../../routing/key-access.ts';
import { LEASE } from '../../upstream/operation/operations-table.ts';
import { ticked, type FieldError } from '../field-error.ts';

/** Who may call: admin keys, teams, callers with own provider keys, leases and pages of other origins. */

/** Finds admin keys whose id means `ADMIN_TOKEN` in the audit log and in sessions. */
export function adminKeyErrors({ admin_keys: keys }: Config): FieldError[] {
  return keys.flatMap(({ id }, index) => {
    if (id !== TOKEN_ACTOR) return [];
    const message = 'is the name of `ADMIN_TOKEN` in the audit log; choose another id';
    return [{ path: `admin_keys[${index}].id`, message }];
  });
}

/** Warns of keys whose team is not listed, which is most likely a misspelling. */
export function teamWarnings({ keys, teams }: Pick<Config, 'keys' | 'teams'>): string[] {
  if (teams.length === 0) return [];
  const listed = new Set(teams.map(({ id }) => id));
  const unknown = Map.groupBy(
    keys.filter(({ team }) => team !== null && !listed.has(team)),
    ({ team }) => team ?? '',
  );
  return [...unknown].map(
    ([team, of]) =>
      `${namesOf(of)} ${of.length === 1 ? 'names' : 'name'} the team \`${team}\`, which \`teams\` does not list, so no team limits apply to ${of.length === 1 ? 'it' : 'them'}. Correct the name, or add the team.`,
  );
}

/** Maximum keys in a sentence. */
const KEYS_NAMED_MAX = 5;

function namesOf(keys: readonly { readonly id: string }[]): string {
  const named = keys.slice(0, KEYS_NAMED_MAX).map(({ id }) => id);
  const more = keys.length - named.length;
  return `${keys.length === 1 ? 'The key' : 'The keys'} ${ticked(named)}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Maximum upstreams that a warning names. */
const UPSTREAMS_NAMED_MAX = 3;

/** Values of `partition_by` that separate callers' own provider keys. */
const BY_KEYS = ['api_key', 'caller'];

/**
 * Warns if a change makes a group count calls with several callers' own provider keys together. Each of these keys has
 * its own limits at its provider. Unchanged groups cause no warning.
 */
export function ownKeyWarnings(
  before: Config,
  config: Config,
  upstreamsOfConfig: (config: Config) => ReadonlyMap<string, Upstream>,
): string[] {
  const earlier = new Map(before.groups.map((group) => [group.name, group]));
  const [then, now] = [upstreamsOfConfig(before), upstreamsOfConfig(config)];
  return config.groups.flatMap((group) => {
    const covered = coveredBy(group, config, now);
    const was = earlier.get(group.name);
    const known = new Set(was === undefined ? [] : coveredBy(was, before, then));
    const isSame = was !== undefined && relevant(was) === relevant(group);
    if (covered.length === 0 || (isSame && covered.every((id) => known.has(id)))) return [];
    const named = ticked(covered.slice(0, UPSTREAMS_NAMED_MAX));
    const more =
      covered.length > UPSTREAMS_NAMED_MAX
        ? ` and ${covered.length - UPSTREAMS_NAMED_MAX} more`
        : '';
    return [
      `Group \`${group.name}\` counts calls with callers' own provider keys for ${named}${more} together, but each ` +
        'key has its own limits at the provider. Set `partition_by: ["api_key"]`, unless all callers share one key.',
    ];
  });
}

/** Returns the upstreams of a group that use callers' own keys. With members, such keys have separate partitions. */
function coveredBy(
  group: GroupConfig,
  config: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): string[] {
  if (group.members.length > 0 || BY_KEYS.some((by) => group.partition_by.includes(by))) return [];
  const isNamed = namesUpstreams(group);
  // The upstreams of a model are unknown here.
  if (!isNamed && group.match.models.length > 0) return [];
  const configured = new Set(config.upstreams.map(({ id }) => id));
  return upstreamsOf(group, upstreams)
    .filter(({ id, secret, isKeyless }) => {
      return secret === null && !isKeyless && (isNamed || configured.has(id));
    })
    .map(({ id }) => id);
}

function relevant({ match, partition_by, members }: GroupConfig): string {
  return JSON.stringify([match, partition_by, members]);
}

/** Warns of leases that every client may take, and of groups that match leases although no key may take any. */
export function leaseWarnings(config: Config): string[] {
  const { leases, keys, groups } = config;
  if (leases === 'open') {
    const clients = keys.length === 0 ? 'every client that reaches Headgate' : 'every gateway key';
    return [
      `\`leases: open\` lets ${clients} take all slots of a group and hold them. Use it only on a trusted network. ` +
        'Elsewhere, set `leases: keys`, and `allow: [lease]` on the keys that take leases.',
    ];
  }
  if (keys.some(allowsLeases)) return [];
  const named = groups.filter(({ match: { operations } }) =>
    operations.some((pattern) => pattern !== '*' && compileGlobs([pattern])(LEASE)),
  );
  return named.map(
    ({ name }) => `Group \`${name}\` matches leases, but no key may take any. ${HOW_TO_ALLOW}`,
  );
}

const HOW_TO_ALLOW =
  'Add `allow: [lease]` to the keys that take leases, or set `leases: open` on a trusted network.';

/**
 * Warns of a document that closes leases because it does not set `leases`. There is no warning if clients could not
 * take leases before either, unless there was no configuration.
 */
export function closedLeaseWarnings(document: unknown, before: Config, after: Config): string[] {
  const isSet = 'leases' in Object(document);
  if (isSet || isEmpty(after) || !isClosed(after)) return [];
  if (!isEmpty(before) && isClosed(before)) return [];
  return [
    `\`leases\` is not set, so \`POST /leases\` requires a key with \`allow: [lease]\`, and no key has it. ${HOW_TO_ALLOW} ` +
      'If no client takes leases, set `leases: keys` to end this warning.',
  ];
}

/**
 * Warns of keys whose `allow` includes the right to report usage only by a wildcard, which may be unintended.
 */
export function leaseUsageWarnings({ keys }: Pick<Config, 'keys'>): string[] {
  return keys
    .filter((key) => mayReportUsage(key) && !key.allow.includes(LEASE_USAGE))
    .map(
      ({ id, allow }) =>
        `Key \`${id}\`: \`allow: [${allow.join(', ')}]\` includes \`lease_usage\`, so budgets and rates count the usage that its leases report. ` +
        'List the operations that the key needs instead, or add `lease_usage` to the list to keep the right and end this warning.',
    );
}

/** Whether no client may take leases. */
function isClosed({ leases, keys }: Config): boolean {
  return leases === 'keys' && !keys.some(allowsLeases);
}

function isEmpty({ keys, groups }: Config): boolean {
  return keys.length + groups.length === 0;
}

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
