import * as z from 'zod';
import { changedSchema, mergePatchSchema, pageByName, pageOf, pageQuery } from '../shapes.ts';
import { check, madeOr, route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import {
  type Edit,
  changeConfig,
  currentSnapshot,
  inEntry,
  mergePatch,
  requireSameName,
  withEntry,
} from '../change.ts';
import { plannedSchema, previewOf } from '../change-preview.ts';
import { teamSchema } from '../../contract/config/keys.ts';
import type { Config, TeamConfig } from '../../contract/config/config.ts';

export const teamParams = z.strictObject({
  id: z.string().min(1).max(300).describe('Id of the team.'),
});

/** A team as the body of `PUT`. The id is in the path. */
export const teamDocumentSchema = teamSchema
  .extend({ id: z.string().optional().describe('If present, the same as in the path.') })
  .describe('A team. Omitted fields have their defaults.');

export const shownTeamSchema = z
  .object({
    ...teamSchema.shape,
    keys: z.array(z.string()).describe('Ids of the keys that name it.'),
    is_listed: z
      .boolean()
      .describe('Whether `teams` of the configuration contains it. Otherwise, only keys name it.'),
  })
  .describe('A team.');

const changedTeamSchema = changedSchema.extend({ team: shownTeamSchema });

const WITHOUT_LIMITS = teamSchema.parse({ id: 'team' });

export const TEAM_ROUTES = {
  listTeams: route('GET /teams', {
    tag: 'keys',
    summary: 'List teams by id, both configured ones and those that keys name',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('teams', shownTeamSchema) },
    hasEtag: true,
  }).servedBy(async ({ context, query }) => {
    const { version, config } = await currentSnapshot(context.env);
    const named = config.keys.flatMap(({ team }) => team ?? []);
    const ids = [...new Set([...config.teams.map(({ id }) => id), ...named])];
    const { items, next_cursor } = pageByName(ids, (id) => id, query);
    const teams = items.map((id) => shown(config, id));
    return { status: 200, body: { version, teams, next_cursor }, version };
  }),

  getTeam: route('GET /teams/{id}', {
    tag: 'keys',
    summary: 'Get a team',
    role: 'viewer',
    params: teamParams,
    answers: { 200: shownTeamSchema },
    hasEtag: true,
    problems: [404],
  }).servedBy(async ({ context, params: { id } }) => {
    const { version, config } = await currentSnapshot(context.env);
    const team = shown(config, id);
    if (!team.is_listed && team.keys.length === 0) throw noTeam(id);
    return { status: 200, body: team, version };
  }),

  putTeam: route('PUT /teams/{id}', {
    tag: 'keys',
    summary: 'Create or replace the limits of a team',
    description: 'The limits apply to all keys that name the team, within 5 seconds everywhere.',
    role: 'admin',
    params: teamParams,
    body: teamDocumentSchema,
    answers: { 200: changedTeamSchema, 201: changedTeamSchema },
    hasEtag: true,
    takesIfMatch: true,
  }).servedBy(({ context, params: { id }, body }) =>
    changeTeam(context, id, 'put', () => parse(id, body)),
  ),

  patchTeam: route('PATCH /teams/{id}', {
    tag: 'keys',
    summary: 'Change the limits of a team',
    description: 'A JSON merge patch (RFC 7396) of a team. The result must be a valid team.',
    role: 'admin',
    params: teamParams,
    body: mergePatchSchema,
    answers: { 200: changedTeamSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { id }, body }) => {
    const changed = await changeTeam(context, id, 'patch', (config) => {
      const { keys, is_listed, ...present } = shown(config, id);
      if (!is_listed && keys.length === 0) throw noTeam(id);
      return parse(id, mergePatch(present, body));
    });
    return { ...changed, status: 200 as const };
  }),

  deleteTeam: route('DELETE /teams/{id}', {
    tag: 'keys',
    summary: 'Remove the limits of a team',
    description: 'Keys continue to name the team, and its costs are still reported.',
    role: 'admin',
    params: teamParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { id } }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `team ${id}: delete`,
      next: (config) => {
        if (!shown(config, id).is_listed) throw noTeam(id);
        return { ...config, teams: config.teams.filter((team) => team.id !== id) };
      },
    });
    return { status: 200, body: { version, warnings }, version };
  }),

  previewTeam: route('POST /teams/{id}/preview', {
    tag: 'keys',
    summary: 'Preview a change of a team',
    role: 'admin',
    params: teamParams,
    body: teamDocumentSchema,
    answers: { 200: plannedSchema },
    hasEtag: true,
  }).servedBy(({ context, params: { id }, body }) => previewOf(context, teamPreviewEdit(id, body))),
};

async function changeTeam(
  context: AdminContext,
  id: string,
  verb: string,
  edited: (config: Config) => TeamConfig,
) {
  const edit = teamEdit(id, verb, edited);
  const { version, before, config, warnings } = await changeConfig(context, edit);
  const body = { version, warnings, team: shown(config, id) };
  return madeOr(!before.teams.some((team) => team.id === id), { body, version });
}

function teamEdit(id: string, verb: string, edited: (config: Config) => TeamConfig): Edit {
  return {
    action: `team ${id}: ${verb}`,
    next: (present) => ({ ...present, teams: withEntry(present.teams, edited(present)) }),
    pathOf: inEntry('teams', id),
  };
}

export function teamPreviewEdit(id: string, body: unknown): Edit {
  return teamEdit(id, 'preview', () => parse(id, body));
}

function parse(id: string, document: unknown): TeamConfig {
  const team = check(teamSchema, { id, ...Object(document) });
  requireSameName(team, id, 'A team');
  return team;
}

/** Returns a team with its keys. A team without an entry only has a name. */
function shown({ keys, teams }: Config, id: string) {
  const listed = teams.find((team) => team.id === id);
  const named = keys.flatMap((key) => (key.team === id ? [key.id] : []));
  const { note, limits } = listed ?? WITHOUT_LIMITS;
  return { id, note, limits, keys: named, is_listed: listed !== undefined };
}

function noTeam(id: string): ProblemError {
  return new ProblemError(
    404,
    `There is no team \`${id}\`. No key names it, and \`teams\` does not contain it.`,
  );
}
