import * as z from 'zod';
import { changedConfigSchema } from './answer-schemas.ts';
import { routes } from './route.ts';

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

export const VERSION_ROUTES = routes({
  listVersions: {
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
  },
  rollBack: {
    tag: 'configuration',
    summary: 'Restore a version, or undo one change',
    description:
      'Creates a new version. A rollback never creates, deletes or reactivates keys: keys created since stay, deleted keys stay deleted, and revocations, rotations, expiries and admin keys stay unchanged. Preview it with `POST /config/preview?as=rollback`.',
    role: 'admin',
    body: rollbackSchema,
    answers: { 200: changedConfigSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
});
