import * as z from 'zod';
import { changedConfigSchema } from './answer-schemas.ts';
import { routes } from './route.ts';

/** Versions of the configuration, and the ways back to them. */

/** A way back: to a version, or one change back. */
export const rollbackSchema = z
  .strictObject({
    version: z
      .int()
      .min(0)
      .optional()
      .describe('Restores this version, but for which keys there are and whether they open.'),
    undo: z
      .int()
      .min(1)
      .optional()
      .describe(
        'Takes back the change that made this version, and nothing that was changed since.',
      ),
    conflicts: z
      .enum(['refuse', 'keep', 'overwrite'])
      .default('refuse')
      .describe(
        'What becomes of fields of an undone change that were changed since: the request is refused with 409, they stay as they are, or they go back too.',
      ),
  })
  .refine(({ version, undo }) => (version === undefined) !== (undo === undefined), {
    error: 'expected either "version" or "undo"',
  })
  .describe('A way back. Either `version` or `undo`.');

const versionSchema = z.object({
  version: z.int().min(0).describe('The version.'),
  at: z.iso.datetime().describe('When it was made.'),
  actor: z
    .string()
    .describe('Who made it. Empty: a release that kept no versions; the audit log may know.'),
  action: z.string().describe('The action that made it, as in `group openai-shared: patch`.'),
});

export const VERSION_ROUTES = routes({
  listVersions: {
    tag: 'configuration',
    summary: 'The versions that are kept, newest first',
    description:
      'The one in force and the 50 before it. Changes of `headgate canary` do not count: of consecutive ones the last is kept.',
    role: 'viewer',
    answers: {
      200: z.object({
        version: z.int().min(0).describe('Version in force.'),
        versions: z.array(versionSchema).describe('The newest first.'),
      }),
    },
    hasEtag: true,
  },
  rollBack: {
    tag: 'configuration',
    summary: 'Restores a version, or takes one change back',
    description:
      'Makes a new version by it. No key comes back, none goes, and none opens again: those made since stay, deleted ones stay deleted, and revocations, rotations, ends and admin keys stay as they are. `POST /config/preview?as=rollback` shows it before.',
    role: 'admin',
    body: rollbackSchema,
    answers: { 200: changedConfigSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
});
