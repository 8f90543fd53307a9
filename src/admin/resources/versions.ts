import * as z from 'zod';
import { changedConfigSchema } from '../shapes.ts';
import { invalid, route } from '../route.ts';
import { ProblemError } from '../context.ts';
import { type Edit, changeConfig, currentSnapshot } from '../change.ts';
import { settingsOf } from '../../routing/implied-groups.ts';
import { type Env, directoryOf } from '../../env.ts';
import type { TemporaryField, TemporaryOrder } from '../../contract/rpc/directory-rpc.ts';
import type { Config } from '../../contract/config/config.ts';
import {
  isOfDoorsAlone,
  restored,
  undone,
  isSame,
  fieldAt,
  pathText,
  type RolledBack,
} from '../../config/document-changes.ts';

export const rollbackSchema = z
  .strictObject({
    version: z
      .int()
      .min(0)
      .optional()
      .describe('Restores this version, except for the existence and validity of keys.'),
    undo: z
      .int()
      .min(1)
      .optional()
      .describe('Reverts the change that created this version, and no later changes.'),
    conflicts: z
      .enum(['refuse', 'keep', 'overwrite'])
      .default('refuse')
      .describe(
        'What to do with fields of an undone change that were changed again since. `refuse`: reject the request with 409. `keep`: leave them as they are. `overwrite`: revert them, too.',
      ),
  })
  .refine(({ version, undo }) => (version === undefined) !== (undo === undefined), {
    error: 'expected either "version" or "undo"',
  })
  .describe('A rollback. Send either `version` or `undo`.');

const versionSchema = z.object({
  version: z.int().min(0).describe('Number of the version.'),
  at: z.iso.datetime().describe('Time of its creation.'),
  actor: z
    .string()
    .describe('Actor that created it. Empty for version 0, the empty configuration.'),
  action: z.string().describe('Action that created it, such as `group openai-shared: patch`.'),
});

/** The ends of temporary values that a rollback restores. */
interface Ends {
  readonly orders: readonly TemporaryOrder[];
  /** Sentences on values that revert automatically, and on values that no longer do. */
  readonly notes: readonly string[];
}

type RollbackRequest = z.output<typeof rollbackSchema>;

interface RollbackEdit {
  readonly edit: Edit;
  /** Notes and conflicts of the last attempt. */
  readonly outcome: () => Pick<RolledBack, 'notes' | 'conflicts'>;
}

const SHOWN_MAX = 80;

export const VERSION_ROUTES = {
  listVersions: route('GET /config/versions', {
    tag: 'configuration',
    summary: 'List the stored versions, the newest first',
    description:
      'Lists the current version and the 50 before it. Of consecutive changes by `headgate canary`, only the last is stored.',
    role: 'viewer',
    answers: {
      200: z.object({
        version: z.int().min(0).describe('Current version.'),
        versions: z.array(versionSchema).describe('Versions, the newest first.'),
      }),
    },
    hasEtag: true,
  }).servedBy(async ({ context }) => {
    const [{ version }, versions] = await Promise.all([
      currentSnapshot(context.env),
      directoryOf(context.env).versions(),
    ]);
    return { status: 200, body: { version, versions }, version };
  }),

  rollBack: route('POST /config/rollback', {
    tag: 'configuration',
    summary: 'Restore a version, or undo one change',
    description:
      'Creates a new version. A rollback never creates, deletes or reactivates keys: keys created since stay, deleted keys stay deleted, and revocations, rotations, expiries and admin keys stay unchanged. Preview it with `POST /config/preview?as=rollback`.',
    role: 'admin',
    body: rollbackSchema,
    answers: { 200: changedConfigSchema },
    hasEtag: true,
    takesIfMatch: true,
  }).servedBy(async ({ context, body }) => {
    const { edit, outcome } = await rollbackTarget(context.env, body, false);
    const { version, config, warnings } = await changeConfig(context, edit);
    const groups = config.groups.map(({ name }) => name);
    const all = reported(outcome(), warnings, body.conflicts === 'overwrite');
    return { status: 200, body: { version, groups, warnings: all }, version };
  }),
};

/**
 * Finds the fields that a rollback sets to a value that was temporary.
 *
 * @param temporary fields of the restored version
 */
export function endsOf(
  temporary: readonly TemporaryField[],
  before: Config,
  next: Config,
  now: number,
): Ends {
  const again = temporary.filter(({ group, path, value }) => {
    const [present, then] = [before, next].map((config) => settingsOf(config, group));
    return isSame(fieldAt(then, path), value) && !isSame(fieldAt(present, path), value);
  });
  const notes = again.map(({ group, path, until }) => {
    const at = new Date(until).toISOString();
    const field = `${group}: ${pathText(settingsOf(next, group), path)}`;
    return until > now
      ? `${field} reverts automatically at ${at}, as it did then.`
      : `${field} was temporary until ${at}. That time has passed, so the value is now permanent.`;
  });
  const orders = again
    .filter(({ until }) => until > now)
    .map(({ group, path, was, value, until }) => {
      return { group, until, fields: [{ path, was, value }], named: [] };
    });
  return { orders, notes };
}

/** Creates the edit of a rollback. A preview returns conflicts instead of failing. */
export async function rollbackTarget(
  env: Env,
  request: RollbackRequest,
  isPreview: boolean,
): Promise<RollbackEdit> {
  const [back, temporary] = await Promise.all([
    readRollback(env, request),
    directoryOf(env).temporaryAt(
      request.undo === undefined ? (request.version ?? 0) : request.undo - 1,
    ),
  ]);
  const isRefused = request.conflicts === 'refuse' && !isPreview;
  let last: Pick<RolledBack, 'notes' | 'conflicts'> = { notes: [], conflicts: [] };
  return {
    outcome: () => last,
    edit: {
      action:
        request.undo === undefined
          ? `config: restore version ${request.version}`
          : `config: undo version ${request.undo}`,
      next: (present) => {
        const { config, ...rest } = back(present);
        if (isRefused && rest.conflicts.length > 0) throw changedSince(rest.conflicts);
        const { notes } = endsOf(temporary, present, config, Date.now());
        last = { ...rest, notes: [...notes, ...rest.notes] };
        return config;
      },
      orders: (before, next) => endsOf(temporary, before, next, Date.now()).orders,
    },
  };
}

/** Returns the warnings of a rollback, conflicts first. */
export function reported(
  { notes, conflicts }: Pick<RolledBack, 'notes' | 'conflicts'>,
  warnings: readonly string[],
  isAll: boolean,
): string[] {
  const fields = conflicts.map(({ path }) => path).join(', ');
  const since =
    conflicts.length === 0
      ? []
      : [`Changed since, and ${isAll ? 'also reverted' : 'left unchanged'}: ${fields}.`];
  return [...since, ...notes, ...warnings];
}

async function readRollback(
  env: Env,
  request: RollbackRequest,
): Promise<(present: Config) => RolledBack> {
  if (request.undo === undefined) {
    const then = await readVersion(env, request.version ?? 0, 'version');
    return (present) => restored(present, then);
  }
  const [before, after] = await Promise.all([
    readVersion(env, request.undo - 1, 'undo'),
    readVersion(env, request.undo, 'undo'),
  ]);
  if (isOfDoorsAlone(before, after)) {
    throw new ProblemError(
      409,
      `Version ${request.undo} changed only the existence or validity of keys, which a rollback never changes. ` +
        'Create, revoke or delete the key instead.',
    );
  }
  return (present) => undone(present, before, after, request.conflicts === 'overwrite');
}

/** Returns the configuration at a version. Throws if it is not stored. */
export async function readVersion(env: Env, version: number, field: string): Promise<Config> {
  const config = await directoryOf(env).configAt(version);
  if (config !== null) return config;
  const versions = await directoryOf(env).versions();
  const kept = rangesOf(versions.map((each) => each.version));
  const what =
    field === 'undo' ? 'a version that is stored with the one before it' : 'a stored version';
  const stored = kept === '' ? 'No version is stored yet' : `Stored versions: ${kept}`;
  const message = `expected ${what}, but version ${version} is not stored. ${stored}`;
  throw invalid([{ path: field, message }]);
}

/**
 * Formats versions as ranges, such as `3 to 7, 9`. Input is the newest first. Versions of a canary are missing between
 * others.
 */
function rangesOf(versions: readonly number[]): string {
  const ranges: { from: number; to: number }[] = [];
  for (const version of versions.toReversed()) {
    const last = ranges.at(-1);
    if (last?.to === version - 1) last.to = version;
    else ranges.push({ from: version, to: version });
  }
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from} to ${to}`)).join(', ');
}

function changedSince(conflicts: RolledBack['conflicts']): ProblemError {
  const errors = conflicts.map(({ path, was, now }) => ({
    path,
    message: `changed since: it would revert to ${shown(was)}, and is now ${shown(now)}`,
  }));
  return new ProblemError(
    409,
    'Fields of this change were changed again since. Set `conflicts` to `keep` to leave them unchanged, or to `overwrite` to revert them, too.',
    { errors },
  );
}

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
