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

/** An edit that goes back, and what it says once it was tried. */
interface RollbackEdit {
  readonly edit: Edit;
  /** The last try of the edit. */
  readonly said: () => Pick<RolledBack, 'notes' | 'conflicts'>;
}

/** Serves the versions that are kept, and the ways back to them. */
export function addVersionRoutes(app: AdminApp): void {
  serve(app, 'listVersions', async ({ context }) => {
    const [{ version }, versions] = await Promise.all([
      currentSnapshot(context.env),
      directoryOf(context.env).versions(),
    ]);
    return { status: 200, body: { version, versions }, version };
  });

  serve(app, 'rollBack', async ({ context, body }) => {
    const { edit, said } = await rollbackTarget(context.env, body, false);
    const { version, config, warnings } = await changeConfig(context, edit);
    const groups = config.groups.map(({ name }) => name);
    const all = reported(said(), warnings, body.conflicts === 'overwrite');
    return { status: 200, body: { version, groups, warnings: all }, version };
  });
}

/** Makes the edit that goes back. A preview shows conflicts, and does not end with them. */
export async function rollbackTarget(
  env: Env,
  way: RollbackRequest,
  isPreview: boolean,
): Promise<RollbackEdit> {
  const [back, temporary] = await Promise.all([
    readRollback(env, way),
    directoryOf(env).temporaryAt(way.undo === undefined ? (way.version ?? 0) : way.undo - 1),
  ]);
  const isRefused = way.conflicts === 'refuse' && !isPreview;
  let last: Pick<RolledBack, 'notes' | 'conflicts'> = { notes: [], conflicts: [] };
  return {
    said: () => last,
    edit: {
      action:
        way.undo === undefined
          ? `config: restore version ${way.version}`
          : `config: undo version ${way.undo}`,
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

/** Words what stays as it is before what else there is to say. */
export function reported(
  { notes, conflicts }: Pick<RolledBack, 'notes' | 'conflicts'>,
  warnings: readonly string[],
  isAll: boolean,
): string[] {
  const fields = conflicts.map(({ path }) => path).join(', ');
  const since =
    conflicts.length === 0
      ? []
      : [`Changed since, and ${isAll ? 'taken back too' : 'left as it is'}: ${fields}.`];
  return [...since, ...notes, ...warnings];
}

async function readRollback(
  env: Env,
  way: RollbackRequest,
): Promise<(present: Config) => RolledBack> {
  if (way.undo === undefined) {
    const then = await readVersion(env, way.version ?? 0, 'version');
    return (present) => restored(present, then);
  }
  const [before, after] = await Promise.all([
    readVersion(env, way.undo - 1, 'undo'),
    readVersion(env, way.undo, 'undo'),
  ]);
  if (isOfDoorsAlone(before, after)) {
    throw new ProblemError(
      409,
      `Version ${way.undo} changed only which keys there are, or whether they open. That is not taken back: ` +
        'make, revoke or delete the key itself.',
    );
  }
  return (present) => undone(present, before, after, way.conflicts === 'overwrite');
}

/** Reads a version, or says that it is not kept any more. */
export async function readVersion(env: Env, version: number, field: string): Promise<Config> {
  const config = await directoryOf(env).configAt(version);
  if (config !== null) return config;
  const versions = await directoryOf(env).versions();
  const what = field === 'undo' ? `the one before version ${version + 1}, or itself,` : 'it';
  const kept = rangesOf(versions.map((each) => each.version));
  const range = kept === '' ? 'none is kept yet' : `kept are ${kept}, ${what} is not`;
  throw invalid([{ path: field, message: `expected a version that is kept: ${range}` }]);
}

/** Words versions, the newest first, as in `3 to 7, 9`. Versions of a canary are missing between others. */
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
    message: `changed since: it would go back to ${shown(was)}, and is ${shown(now)} now`,
  }));
  return new ProblemError(
    409,
    'Fields of this change were changed since. Say "conflicts": "keep" to leave these as they are, or "overwrite" to take them back too.',
    { errors },
  );
}

/** Maximum characters of a value in a message. */
const SHOWN_MAX = 80;

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
