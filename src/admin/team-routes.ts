import { teamSchema } from '../contract/config/keys.ts';
import type { Config, TeamConfig } from '../contract/config/config.ts';
import { changeConfig, type Edit } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { mergePatch } from './merge-patch.ts';
import { pageByName } from './pages.ts';
import { ProblemError } from './problem.ts';
import { check, invalid, madeOr, serve } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';

export function addTeamRoutes(app: AdminApp): void {
  serve(app, 'listTeams', async ({ context, query }) => {
    const { version, config } = await currentSnapshot(context.env);
    const named = config.keys.flatMap(({ team }) => team ?? []);
    const ids = [...new Set([...config.teams.map(({ id }) => id), ...named])];
    const { items, next_cursor } = pageByName(ids, (id) => id, query);
    const teams = items.map((id) => shown(config, id));
    return { status: 200, body: { version, teams, next_cursor }, version };
  });

  serve(app, 'getTeam', async ({ context, params: { id } }) => {
    const { version, config } = await currentSnapshot(context.env);
    const team = shown(config, id);
    if (!team.is_listed && team.keys.length === 0) throw noTeam(id);
    return { status: 200, body: team, version };
  });

  serve(app, 'putTeam', ({ context, params: { id }, body }) =>
    changeTeam(context, id, 'put', () => parse(id, body)),
  );

  serve(app, 'patchTeam', async ({ context, params: { id }, body }) => {
    const changed = await changeTeam(context, id, 'patch', (config) => {
      const { keys, is_listed, ...present } = shown(config, id);
      if (!is_listed && keys.length === 0) throw noTeam(id);
      return parse(id, mergePatch(present, body));
    });
    return { ...changed, status: 200 as const };
  });

  serve(app, 'deleteTeam', async ({ context, params: { id } }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `team ${id}: delete`,
      next: (config) => {
        if (!shown(config, id).is_listed) throw noTeam(id);
        return { ...config, teams: config.teams.filter((team) => team.id !== id) };
      },
    });
    return { status: 200, body: { version, warnings }, version };
  });
}

async function changeTeam(
  context: AdminContext,
  id: string,
  verb: string,
  edited: (config: Config) => TeamConfig,
) {
  const edit = teamEdit(id, verb, edited);
  const { version, before, config, warnings } = await changeConfig(context, edit);
  const body = { version, warnings, team: shown(config, id) };
  return madeOr(indexOf(before, id) === -1, { body, version });
}

function teamEdit(id: string, verb: string, edited: (config: Config) => TeamConfig): Edit {
  return {
    action: `team ${id}: ${verb}`,
    next: (present) => {
      const next = edited(present);
      const index = indexOf(present, id);
      const teams = index === -1 ? [...present.teams, next] : present.teams.with(index, next);
      return { ...present, teams };
    },
    pathOf: (path, made) => {
      const index = indexOf(made, id);
      const prefix = `teams[${index === -1 ? made.teams.length : index}].`;
      return path.startsWith(prefix) ? path.slice(prefix.length) : path;
    },
  };
}

export function teamPreviewEdit(id: string, body: unknown): Edit {
  return teamEdit(id, 'preview', () => parse(id, body));
}

function parse(id: string, document: unknown): TeamConfig {
  const team = check(teamSchema, { id, ...Object(document) });
  if (team.id === id) return team;
  const message = `must be \`${id}\`, as in the path. A team cannot be renamed`;
  throw invalid([{ path: 'id', message }]);
}

function indexOf({ teams }: Config, id: string): number {
  return teams.findIndex((team) => team.id === id);
}

/** Returns a team with its keys. A team without an entry only has a name. */
function shown({ keys, teams }: Config, id: string) {
  const listed = teams.find((team) => team.id === id);
  const named = keys.flatMap((key) => (key.team === id ? [key.id] : []));
  const { note, limits } = listed ?? WITHOUT_LIMITS;
  return { id, note, limits, keys: named, is_listed: listed !== undefined };
}

const WITHOUT_LIMITS = teamSchema.parse({ id: 'team' });

function noTeam(id: string): ProblemError {
  return new ProblemError(
    404,
    `There is no team \`${id}\`. No key names it, and \`teams\` does not contain it.`,
  );
}
