import * as z from 'zod';
import { teamSchema } from '../config/keys.ts';
import { changedSchema, pageOf } from './answer-schemas.ts';
import { mergePatchSchema, pageQuery } from './group-routes.ts';
import { routes } from './route.ts';

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

export const TEAM_ROUTES = routes({
  listTeams: {
    tag: 'keys',
    summary: 'List teams by id, both configured ones and those that keys name',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('teams', shownTeamSchema) },
    hasEtag: true,
  },
  getTeam: {
    tag: 'keys',
    summary: 'Get a team',
    role: 'viewer',
    params: teamParams,
    answers: { 200: shownTeamSchema },
    hasEtag: true,
    problems: [404],
  },
  putTeam: {
    tag: 'keys',
    summary: 'Create or replace the limits of a team',
    description: 'The limits apply to all keys that name the team, within 5 seconds everywhere.',
    role: 'admin',
    params: teamParams,
    body: teamDocumentSchema,
    answers: { 200: changedTeamSchema, 201: changedTeamSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
  patchTeam: {
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
  },
  deleteTeam: {
    tag: 'keys',
    summary: 'Remove the limits of a team',
    description: 'Keys continue to name the team, and its costs are still reported.',
    role: 'admin',
    params: teamParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
});
