import * as z from 'zod';
import { durationSchema } from './duration.ts';
import { limitsSchema, text } from './limits.ts';

/** Members of a group: the places where its calls can run. */

/** A member, as operators write it. */
export const memberSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore')
    .optional()
    .describe(
      'Name of the member. Absent: its upstream, and its secret behind a colon, as in `openai:team-a` for `UPSTREAM_TEAM_A`.',
    ),
  upstream: text.describe('Id of the upstream that its calls go to.'),
  secret: z
    .string()
    .regex(/^UPSTREAM_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with UPSTREAM_')
    .optional()
    .describe(
      'Name of the Worker secret with its key, which begins with `UPSTREAM_`. Absent: that of the upstream, if it has one.',
    ),
  models: z
    .record(text.regex(/^[^*]+$/, 'expected a model, and no pattern'), text)
    .default({})
    .describe(
      'Names of models there, by the names that callers use, as in `{ gpt-4o: eu-deployment-7 }`.',
    ),
  limits: limitsSchema
    .omit({ max_weight: true })
    .prefault({})
    .describe('Limits of this member alone; those of the group are over all members together.'),
  weight: z.number().min(0.01).max(1_000).default(1).meta({
    description: 'Its part of the calls among members of its tier that have room.',
    unit: 'parts',
  }),
  tier: z.int().min(1).max(10).default(1).meta({
    description: 'A higher one gets calls while no member of a lower one has room.',
    unit: 'tier',
  }),
  first_token_ms: z.int().min(1).max(3_600_000).optional().meta({
    description:
      'Maximum time to the first content of an answer, if another member or upstream can take the call instead. Comments, pings and other events before the content do not count. Absent means no maximum.',
    unit: 'ms',
  }),
  enabled: z.boolean().default(true).describe('Switched off, it gets no calls.'),
});

export const membersSchema = z.array(memberSchema).max(32).default([]);

export const affinitySchema = z.strictObject({
  by: z
    .enum(['agent', 'caller', 'none'])
    .default('agent')
    .describe('Whose calls go to the member where the last one went: prompt caches stay warm.'),
  for: durationSchema('1s', '24h')
    .default('5m')
    .describe('How long after its last call somebody is remembered, as in `90s` or `5m`.'),
  wait: durationSchema('0s', '1h')
    .default('2s')
    .describe('How long a call waits for that member while another has room. `0s`: not at all.'),
});

export type MemberConfig = z.output<typeof memberSchema>;

/** Id of a member wherever one is told apart from others: its name, or what its upstream and secret make of it. */
export function memberIdOf({
  name,
  upstream,
  secret,
}: Pick<MemberConfig, 'name' | 'upstream' | 'secret'>): string {
  if (name !== undefined) return name;
  if (secret === undefined) return upstream;
  return `${upstream}:${secret
    .replace(/^UPSTREAM_/, '')
    .toLowerCase()
    .replaceAll('_', '-')}`;
}
