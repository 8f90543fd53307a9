import type * as z from 'zod';
import { isOfDoorsAlone, restored, undone, type RolledBack } from '../config/roll-back.ts';
import type { rollbackSchema } from '../contract/admin/version-routes.ts';
import type { Config } from '../contract/config/config.ts';
import { directoryOf, type Env } from '../env.ts';
import { changeConfig, type Edit } from './change.ts';
import type { AdminApp } from './context.ts';
import { ProblemError } from './problem.ts';
import { invalid, serve } from './serve.ts';
import { endsOf } from './version-ends.ts';
import { currentSnapshot } from './snapshot.ts';

type RollbackRequest = z.output<typeof rollbackSchema>;

interface RollbackEdit {
  readonly edit: Edit;
  /** Notes and conflicts of the last attempt. */
  readonly outcome: () => Pick<RolledBack, 'notes' | 'conflicts'>;
}

export function addVersionRoutes(app: AdminApp): void {
  serve(app, 'listVersions', async ({ context }) => {
    const [{ version }, versions] = await Promise.all([
      currentSnapshot(context.env),
      directoryOf(context.env).versions(),
    ]);
    return { status: 200, body: { version, versions }, version };
  });

  serve(app, 'rollBack', async ({ context, body }) => {
    const { edit, outcome } = await rollbackTarget(context.env, body, false);
    const { version, config, warnings } = await changeConfig(context, edit);
    const groups = config.groups.map(({ name }) => name);
    const all = reported(outcome(), warnings, body.conflicts === 'overwrite');
    return { status: 200, body: { version, groups, warnings: all }, version };
  });
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

const SHOWN_MAX = 80;

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
