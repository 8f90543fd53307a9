import type { Config } from '../contract/config/config.ts';
import { KEYLESS_KEPT_MS, type KeylessCaller } from '../contract/reasons.ts';
import { plural } from '../core/words/figures.ts';
import { directoryOf, jurisdictionOf, type Env } from '../env.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { requiresKey } from '../routing/key-access.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import {
  membersWithoutSecret,
  refusedSecrets,
  secretFault,
  withoutSecret,
} from '../runtime/secrets.ts';
import { listItems } from '../runtime/header-value.ts';
import type {
  TemporaryField,
  TemporaryOrder,
  ConfigSnapshot,
} from '../contract/rpc/directory-rpc.ts';
import { isolateConfig } from '../config/isolate-config.ts';
import { readOwnDocument, foreignFieldOf } from '../config/own-config.ts';
import type { FieldError } from '../config/field-error.ts';
import { rankErrors } from '../config/check/groups.ts';
import { ownKeyWarnings, closedLeaseWarnings, leaseUsageWarnings } from '../config/check/access.ts';
import { checkConfig, type CheckOptions } from '../config/check-config.ts';
import { networkWarnings, socketWarnings } from '../config/check/upstreams.ts';
import { etag, invalid } from './route.ts';
import { ProblemError, type AdminContext } from './context.ts';
import {
  NOTHING_REFUSED,
  refusalWarnings,
  refusedOrNothing,
  type LastHourEffect,
} from './calls-refused.ts';

/** Changes of the configuration through the admin API, and warnings about callers that a change would lock out. */

/** Maximum number of upstreams in a warning. */
const NAMED_MAX = 5;

/** Returns callers without a gateway key whose calls were served within the last hour. */
export function keylessCallers(env: Env): Promise<KeylessCaller[]> {
  return directoryOf(env).keyless(Date.now() - KEYLESS_KEPT_MS);
}

/** Returns the upstreams that need a gateway key in a configuration, and did not in the one before. */
function closedBy(before: Config, config: Config): ReadonlySet<string> {
  const open = [...resolveUpstreams(before, BUILT_IN_UPSTREAMS).values()]
    .filter((upstream) => !requiresKey(before, upstream))
    .map(({ id }) => id);
  const now = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  return new Set(
    open.filter((id) => {
      const upstream = now.get(id);
      return upstream !== undefined && requiresKey(config, upstream);
    }),
  );
}

/** Returns the callers that a change locks out, because it requires a gateway key. */
export function lockedOut(
  callers: readonly KeylessCaller[],
  before: Config,
  config: Config,
): KeylessCaller[] {
  const closed = closedBy(before, config);
  return callers.filter(({ upstream }) => closed.has(upstream));
}

/** Warns about a change that locks out callers of the last hour. */
async function lockoutWarnings(env: Env, before: Config, config: Config): Promise<string[]> {
  // Most changes lock out no callers, and need no request.
  if (closedBy(before, config).size === 0) return [];
  try {
    const out = lockedOut(await keylessCallers(env), before, config);
    return out.length === 0 ? [] : [lockoutText(out)];
  } catch {
    return [
      'This change requires a gateway key from callers that needed none. The callers of the last hour without a key could not be counted. `GET /keyless-callers` lists them.',
    ];
  }
}

function lockoutText(out: readonly KeylessCaller[]): string {
  const { callers, calls } = sumOf(out);
  const byUpstream = [...Map.groupBy(out, ({ upstream }) => upstream)];
  const named = byUpstream
    .slice(0, NAMED_MAX)
    .map(([id, those]) => `\`${id}\` (${plural(sumOf(those).callers, 'caller')})`);
  const more = byUpstream.length - named.length;
  return (
    `Callers without a gateway key will be rejected with \`key_missing\`: ${plural(callers, 'caller')} with ${plural(calls, 'call')} ` +
    `within the last hour, at ${named.join(', ')}${more > 0 ? ` and ${plural(more, 'other upstream')}` : ''}. ` +
    'To move them one by one, set `require_key: false`, give them keys, and remove the setting when `GET /keyless-callers` is empty.'
  );
}

/** Counts callers and their calls. A provider key at two upstreams counts twice. */
export function sumOf(callers: readonly KeylessCaller[]): { callers: number; calls: number } {
  return { callers: callers.length, calls: callers.reduce((sum, { calls }) => sum + calls, 0) };
}

/** Maximum rounds of read, edit and replace if concurrent changes interfere. */
const ATTEMPTS = 5;

/** Maximum bytes of a configuration. It is one row of the directory, and a row holds at most 2 MB. */
const CONFIG_BYTES_MAX = 1_900_000;

export interface Edit {
  /** Action in the audit log. */
  readonly action: string;
  /**
   * Returns the next configuration, which is validated afterwards. It may be called again after a concurrent change,
   * and may throw a `ProblemError`.
   */
  next(config: Config): unknown;
  /** Returns the duration of the edit. Absent if it is permanent. */
  readonly orders?: (before: Config, next: Config) => readonly TemporaryOrder[];
  /** Translates a path in the configuration into one in the request body. */
  readonly pathOf?: (path: string, config: Config) => string;
}

/** An entry of a list of the configuration. Its name is in the path of requests about it. */
type NamedEntry = { readonly id: string } | { readonly name: string };

function nameOf(entry: NamedEntry): string {
  return 'id' in entry ? entry.id : entry.name;
}

/** Puts an entry into its list, in place of the entry with the same name. */
export function withEntry<Entry extends NamedEntry>(
  entries: readonly Entry[],
  entry: Entry,
): Entry[] {
  const index = entries.findIndex((one) => nameOf(one) === nameOf(entry));
  return index === -1 ? [...entries, entry] : entries.with(index, entry);
}

/** Translates paths in the configuration into those in a request about one entry of a list. */
export function inEntry(
  list: 'admin_keys' | 'groups' | 'keys' | 'teams' | 'upstreams',
  name: string,
): NonNullable<Edit['pathOf']> {
  return (path, config) => {
    const entries: readonly NamedEntry[] = config[list];
    const index = entries.findIndex((entry) => nameOf(entry) === name);
    const prefix = `${list}[${index === -1 ? entries.length : index}].`;
    return path.startsWith(prefix) ? path.slice(prefix.length) : path;
  };
}

/** Throws if the body of a request names another entry than its path. `what` begins the sentence: "A group". */
export function requireSameName(entry: NamedEntry, name: string, what: string): void {
  if (nameOf(entry) === name) return;
  const message = `must be \`${name}\`, as in the path. ${what} cannot be renamed`;
  throw invalid([{ path: 'id' in entry ? 'id' : 'name', message }]);
}

export interface ChangeResult {
  readonly version: number;
  readonly before: Config;
  /** The same as `before` if the edit changes nothing. */
  readonly config: Config;
  readonly warnings: string[];
  /** Calls of the last hour that the edit would reject. The warnings describe them, too. */
  readonly lastHour: LastHourEffect;
}

/**
 * Reads, edits, validates and replaces the configuration. Without `If-Match`, it starts over after a concurrent change.
 * An edit that changes nothing creates no version.
 */
export async function changeConfig(context: AdminContext, edit: Edit): Promise<ChangeResult> {
  const wanted = ifMatch(context);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { version, config: before, temporary = [] } = await currentSnapshot(context.env);
    if (wanted !== null && !wanted.includes(version)) throw changedMeanwhile(version);
    const { config, warnings } = await validated(context.env, edit, before);
    const orders = edit.orders?.(before, config) ?? [];
    const [order] = orders.filter((each) => isOrdering(each, temporary));
    const { actor } = context.get('who');
    const directory = directoryOf(context.env);
    const isSame = version > 0 && JSON.stringify(config) === JSON.stringify(before);
    if (isSame && order === undefined) {
      return { version, before, config: before, warnings, lastHour: NOTHING_REFUSED };
    }
    const lastHour = await refusedOrNothing(context.env, before, config);
    const answer =
      isSame && order !== undefined
        ? await directory.setUntil(order, version, actor, edit.action)
        : await directory.replace(config, version, actor, edit.action, orders);
    if (answer.kind === 'replaced') {
      isolateConfig.announce(answer.version);
      return {
        version: answer.version,
        before,
        config: isSame ? before : config,
        warnings: [...refusalWarnings(lastHour), ...warnings],
        lastHour,
      };
    }
    if (wanted !== null) throw changedMeanwhile(answer.version);
  }
  throw new ProblemError(
    409,
    'The configuration was changed concurrently several times. Retry the change.',
  );
}

/** Returns whether an order may change the end of a field that already has its value. */
function isOrdering(
  { group, until, fields }: TemporaryOrder,
  temporary: readonly TemporaryField[],
): boolean {
  if (until !== null && fields.length > 0) return true;
  return temporary.some((one) => one.group === group);
}

/** Validates an edit as `changeConfig` would, and changes nothing. */
export async function tryEdit({ env }: AdminContext, edit: Edit): Promise<ChangeResult> {
  const { version, config: before } = await currentSnapshot(env);
  const { config, warnings } = await validated(env, edit, before);
  const lastHour = await refusedOrNothing(env, before, config);
  const all = [...refusalWarnings(lastHour), ...warnings];
  return { version, before, config, warnings: all, lastHour };
}

/** Returns the settings of this deployment that restrict upstreams and locations. */
function checkOptionsOf(env: Env): CheckOptions {
  return {
    privateUpstreams: env.PRIVATE_UPSTREAMS === 'allow',
    jurisdiction: jurisdictionOf(env),
  };
}

/** Validates an edit, and warns about callers of the last hour that it would lock out. */
async function validated(
  env: Env,
  edit: Edit,
  before: Config,
): Promise<ReturnType<typeof validate>> {
  const { config, warnings } = validate(env, edit, before);
  return { config, warnings: [...warnings, ...(await lockoutWarnings(env, before, config))] };
}

function validate(env: Env, edit: Edit, before: Config): { config: Config; warnings: string[] } {
  const document = edit.next(before);
  const imported = readOwnDocument(document);
  const inRequest = (errors: readonly FieldError[]): FieldError[] =>
    errors.map(({ path, message }) => ({ path: edit.pathOf?.(path, before) ?? path, message }));
  if (!imported.ok) throw invalid(inRequest(imported.errors));
  const { config, notes } = imported;
  const checked = checkConfig(config, BUILT_IN_UPSTREAMS, checkOptionsOf(env));
  const errors = [...checked.errors, ...rankErrors(before, config)];
  if (errors.length > 0) throw invalid(inRequest(errors));
  const bytes = new TextEncoder().encode(JSON.stringify(config)).byteLength;
  if (bytes > CONFIG_BYTES_MAX) {
    throw new ProblemError(
      413,
      `The configuration is too large. With all defaults, it has ${bytes} bytes, and the maximum is ${CONFIG_BYTES_MAX}.`,
    );
  }
  const missing = withoutSecret(env, resolveUpstreams(config, BUILT_IN_UPSTREAMS).values());
  const secrets = missing.map(
    ({ id, secret, fault }) =>
      `Upstream \`${id}\`: the secret \`${secret}\` ${fault}. Until it is set, its calls are rejected with \`secret_missing\`.`,
  );
  const noMember = membersWithoutSecret(env, config.groups);
  const ofMembers = noMember.map(
    ({ group, member, secret, fault }) =>
      `Group \`${group}\`: the secret \`${secret}\` of its member \`${member}\` ${fault}. Until it is set, no calls run there.`,
  );
  return {
    config,
    warnings: [
      ...notes,
      ...checked.warnings,
      ...secrets,
      ...ofMembers,
      ...ownKeyWarnings(before, config, (each) => resolveUpstreams(each, BUILT_IN_UPSTREAMS)),
      ...webhookWarnings(env, config),
      ...secretsOfOthers(env, [...missing, ...noMember]),
    ],
  };
}

/** Warns about unusable secrets that no other warning covers, such as `METRICS_TOKEN`. */
function secretsOfOthers(env: Env, named: readonly { readonly secret: string }[]): string[] {
  const known = new Set(named.map(({ secret }) => secret));
  return refusedSecrets(env)
    .filter(({ secret }) => !known.has(secret))
    .map(
      ({ secret, fault }) =>
        `The secret \`${secret}\` ${fault}. It is not used until it is set correctly.`,
    );
}

function webhookWarnings(env: Env, { webhook }: Config): string[] {
  const secret = webhook?.secret ?? null;
  const fault = secret === null ? null : secretFault(env, secret);
  if (fault === null) return [];
  return [`Webhook: the secret \`${secret}\` ${fault}. Until it is set, no warnings are sent.`];
}

/** Parses the versions that the client accepts. null if there are none, or for `*`. */
function ifMatch(context: AdminContext): readonly number[] | null {
  const header = context.req.header('if-match')?.trim();
  if (header === undefined || header === '*') return null;
  // A tag that Headgate did not create matches no version.
  return listItems(header).map((tag) => Number(/^(?:W\/)?"(\d+)"$/.exec(tag)?.[1] ?? -1));
}

function changedMeanwhile(version: number): ProblemError {
  return new ProblemError(
    412,
    `The configuration has changed and is now at version ${version}. Read it again, then retry your change.`,
    { headers: { etag: etag(version) } },
  );
}

/** Logs an action that does not change the configuration in the audit log. */
export async function note(context: AdminContext, action: string): Promise<void> {
  await directoryOf(context.env).note(context.get('who').actor, action);
}

/** Applies a JSON merge patch (RFC 7396): null removes a field, objects are merged, and other values replace. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads the current configuration. Admin routes never use a copy. */
export async function currentSnapshot(env: Env): Promise<ConfigSnapshot> {
  const snapshot = await directoryOf(env).snapshot(null);
  if (snapshot === null) {
    throw new ProblemError(503, 'The directory returned no configuration. Retry later.');
  }
  return snapshot;
}

interface ImportEdit {
  readonly edit: Edit;
  readonly warningsOf: (changed: ChangeResult) => string[];
}

const FOREIGN =
  'belongs to the configuration of another gateway or agent, which the admin API does not convert; run ' +
  '`headgate apply FILE`, or import it on the page Import / export of the dashboard';

/**
 * Creates the edit that replaces the whole configuration by a document, and the function that returns its warnings. The
 * document may omit the admin keys to keep them.
 */
export function importEdit(document: unknown): ImportEdit {
  const foreign = foreignFieldOf(document);
  if (foreign !== null) throw invalid([{ path: foreign, message: FOREIGN }]);
  const read = readOwnDocument(document);
  if (!read.ok) throw invalid(read.errors);
  const { config: wanted, notes } = read;
  const isWithAdminKeys = 'admin_keys' in Object(document);
  return {
    edit: {
      action: 'config: import',
      next: (present) => (isWithAdminKeys ? wanted : { ...wanted, admin_keys: present.admin_keys }),
    },
    warningsOf: ({ before, config, warnings }) => [
      ...notes,
      ...closedLeaseWarnings(document, before, config),
      ...warnings,
      ...[networkWarnings, socketWarnings, leaseUsageWarnings].flatMap((of) => of(config)),
    ],
  };
}
