import * as z from 'zod';
import { teamSchema } from '../config/keys.ts';
import { changedSchema, pageOf } from './answer-schemas.ts';
import { mergePatchSchema, pageQuery } from './group-routes.ts';
import { routes } from './route.ts';

export const teamParams = z.strictObject({
  id: z.string().min(1).max(300).describe('Id of the team.'),
});

/** A team as `PUT` takes it: its id stands in the path already. */
export const teamDocumentSchema = teamSchema
  .extend({ id: z.string().optional().describe('As in the path, or absent.') })
  .describe('A team; whatever is left out has its default.');

/** A team, with the keys that name it. */
export const shownTeamSchema = z
  .object({
    ...teamSchema.shape,
    keys: z.array(z.string()).describe('Ids of the keys that name it.'),
    is_listed: z.boolean().describe('`teams` of the configuration lists it; else keys alone do.'),
  })
  .describe('A team.');

const changedTeamSchema = changedSchema.extend({ team: shownTeamSchema });

/** Teams: what several keys share. */
export const TEAM_ROUTES = routes({
  listTeams: {
    tag: 'keys',
    summary: 'Teams, by id: those with limits, and those that keys name',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('teams', shownTeamSchema) },
    hasEtag: true,
  },
  getTeam: {
    tag: 'keys',
    summary: 'One team',
    role: 'viewer',
    params: teamParams,
    answers: { 200: shownTeamSchema },
    hasEtag: true,
    problems: [404],
  },
  putTeam: {
    tag: 'keys',
    summary: 'Creates or replaces the limits of a team',
    description: 'They hold over all keys that name the team, within 5 seconds everywhere.',
    role: 'admin',
    params: teamParams,
    body: teamDocumentSchema,
    answers: { 200: changedTeamSchema, 201: changedTeamSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
  patchTeam: {
    tag: 'keys',
    summary: 'Changes the limits of a team',
    description: 'A JSON merge patch (RFC 7396) of a team. What it leads to must be one.',
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
    summary: 'Removes the limits of a team',
    description: 'Keys go on to name it, so that its costs are told as before.',
    role: 'admin',
    params: teamParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
});
