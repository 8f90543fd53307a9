import { listItems } from '../runtime/header-value.ts';
import type { Config } from '../contract/config/config.ts';
import type { TemporaryField, TemporaryOrder } from '../contract/rpc/temporary-rpc.ts';
import { directoryOf, jurisdictionOf, type Env } from '../env.ts';
import { ownKeyWarnings } from '../config/check/own-keys.ts';
import { importConfig } from '../config/import-config.ts';
import {
  membersWithoutSecret,
  refusedSecrets,
  secretFault,
  withoutSecret,
} from '../runtime/secrets.ts';
import { checkConfig, type CheckOptions } from '../config/check-config.ts';
import { rankErrors } from '../config/check/ranks.ts';
import type { FieldError } from '../config/field-error.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { hearOf } from '../config/snapshots.ts';
import type { AdminContext } from './context.ts';
import {
  NOTHING_REFUSED,
  refusalWarnings,
  refusedOrNothing,
  type LastHourEffect,
} from './calls-refused.ts';
import { lockoutWarnings } from './lockout.ts';
import { ProblemError } from './problem.ts';
import { etag, invalid } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';

/** Maximum rounds of read, edit and replace before somebody else's changes win. */
const ATTEMPTS = 5;

/** Maximum bytes of a configuration: it is one row of the directory's, and a row ends at 2 MB. */
const CONFIG_BYTES_MAX = 1_900_000;

/** One edit of the configuration. */
export interface Edit {
  /** Words of the audit log for it. */
  readonly action: string;
  /**
   * Makes the next configuration of the present one; whether it is valid is checked afterwards. It
   * may be called again when somebody else was faster, and may throw a `ProblemError`.
   */
  next(config: Config): unknown;
  /** Makes what the edit says about the time for which it holds. Absent: nothing. */
  readonly orders?: (before: Config, next: Config) => readonly TemporaryOrder[];
  /** Translates a path in the configuration into the request's own document. */
  readonly pathOf?: (path: string, config: Config) => string;
}

/** The result of an edit. */
export interface ChangeResult {
  readonly version: number;
  readonly before: Config;
  /** The one before, where the edit changes nothing. */
  readonly config: Config;
  readonly warnings: string[];
  /** Calls of the last hour that the edit would refuse. The warnings name them too. */
  readonly lastHour: LastHourEffect;
}

/**
 * Reads, edits, validates and replaces the configuration. Without `If-Match` it starts over when
 * somebody else was faster. An edit that changes nothing makes no new version.
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
      hearOf(answer.version);
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
  throw new ProblemError(409, 'The configuration is being changed by others. Try again.');
}

/** Tells whether an order may change for how long something holds that has its value already. */
function isOrdering(
  { group, until, fields }: TemporaryOrder,
  temporary: readonly TemporaryField[],
): boolean {
  if (until !== null && fields.length > 0) return true;
  return temporary.some((one) => one.group === group);
}

/** Checks an edit as `changeConfig` would, and changes nothing. */
export async function tryEdit({ env }: AdminContext, edit: Edit): Promise<ChangeResult> {
  const { version, config: before } = await currentSnapshot(env);
  const { config, warnings } = await validated(env, edit, before);
  const lastHour = await refusedOrNothing(env, before, config);
  const all = [...refusalWarnings(lastHour), ...warnings];
  return { version, before, config, warnings: all, lastHour };
}

/** Takes what decides here which upstreams and places a configuration may name. */
export function checkOptionsOf(env: Env): CheckOptions {
  return {
    privateUpstreams: env.PRIVATE_UPSTREAMS === 'allow',
    jurisdiction: jurisdictionOf(env),
  };
}

/** Validates an edit, and warns of callers of the last hour that it would lock out. */
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
  const imported = importConfig(document);
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
      `With every default filled in, the configuration takes ${bytes} bytes; at most ${CONFIG_BYTES_MAX} can be stored.`,
    );
  }
  const missing = withoutSecret(env, resolveUpstreams(config, BUILT_IN_UPSTREAMS).values());
  const secrets = missing.map(
    ({ id, secret, fault }) =>
      `Upstream "${id}": the secret ${secret} ${fault}. Until it is set, calls on it are refused with secret_missing.`,
  );
  const noMember = membersWithoutSecret(env, config.groups);
  const ofMembers = noMember.map(
    ({ group, member, secret, fault }) =>
      `Group "${group}": the secret ${secret} of its member "${member}" ${fault}. Until it is set, no call runs there.`,
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

/** Warns about refused secrets that stand in no other warning, such as `METRICS_TOKEN`. */
function secretsOfOthers(env: Env, named: readonly { readonly secret: string }[]): string[] {
  const known = new Set(named.map(({ secret }) => secret));
  return refusedSecrets(env)
    .filter(({ secret }) => !known.has(secret))
    .map(
      ({ secret, fault }) =>
        `The secret ${secret} ${fault}. Until it is set again, it is not used.`,
    );
}

function webhookWarnings(env: Env, { webhook }: Config): string[] {
  const secret = webhook?.secret ?? null;
  const fault = secret === null ? null : secretFault(env, secret);
  if (fault === null) return [];
  return [`Webhook: the secret ${secret} ${fault}. Until it is set, no warning is sent.`];
}

/** Reads the versions that the caller accepts. Null: none given, or any (`*`). */
function ifMatch(context: AdminContext): readonly number[] | null {
  const header = context.req.header('if-match')?.trim();
  if (header === undefined || header === '*') return null;
  // A tag that never was one of ours matches no version.
  return listItems(header).map((tag) => Number(/^(?:W\/)?"(\d+)"$/.exec(tag)?.[1] ?? -1));
}

function changedMeanwhile(version: number): ProblemError {
  return new ProblemError(
    412,
    `The configuration is at version ${version} by now. Read it again, then repeat your change.`,
    { headers: { etag: etag(version) } },
  );
}

/** Writes into the audit log what changed no configuration. */
export async function note(context: AdminContext, action: string): Promise<void> {
  await directoryOf(context.env).note(context.get('who').actor, action);
}
