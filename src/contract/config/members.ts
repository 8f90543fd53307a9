import * as z from 'zod';
import { limitsSchema, text } from './limits.ts';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

const DURATION = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/;

/** Parses a duration such as `500ms`, `2s`, `5m` or `1h`. Returns NaN for any other text. */
export function durationMs(written: string): number {
  const [, amount, unit] = DURATION.exec(written) ?? [];
  return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** A duration as text, between two durations in the same notation. */
function durationSchema(least: string, most: string) {
  return z
    .string()
    .regex(DURATION, 'expected a duration like 500ms, 2s, 5m or 1h')
    .refine(
      (written) =>
        !(durationMs(written) < durationMs(least) || durationMs(written) > durationMs(most)),
      { error: `must be between ${least} and ${most}` },
    );
}

export const memberSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore')
    .optional()
    .describe(
      'Name of the member. Absent means its upstream and secret, as in `openai:team-a` for `UPSTREAM_TEAM_A`.',
    ),
  upstream: text.describe('Id of the upstream of its calls.'),
  secret: z
    .string()
    .regex(/^UPSTREAM_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with UPSTREAM_')
    .optional()
    .describe(
      'Name of the Worker secret with its key. It begins with `UPSTREAM_`. Absent means that of the upstream, if it has one.',
    ),
  models: z
    .record(text.regex(/^[^*]+$/, 'expected the name of a model, not a pattern'), text)
    .default({})
    .describe(
      'Model names at this member, by the names that callers use, as in `{ gpt-4o: eu-deployment-7 }`.',
    ),
  limits: limitsSchema
    .omit({ max_weight: true })
    .prefault({})
    .describe('Limits of this member. Limits of the group apply to all members together.'),
  weight: z.number().min(0.01).max(1_000).default(1).meta({
    description: 'Its share of the calls among the members of its tier that have room.',
    unit: 'parts',
  }),
  tier: z.int().min(1).max(10).default(1).meta({
    description: 'Members of a higher tier get calls only while no lower tier has room.',
    unit: 'tier',
  }),
  first_token_ms: z.int().min(1).max(3_600_000).optional().meta({
    description:
      'Maximum time to the first content of an answer, if another member or upstream can take the call instead. Comments, pings and other events before the content do not count. Absent means no maximum.',
    unit: 'ms',
  }),
  enabled: z.boolean().default(true).describe('Whether it gets calls.'),
});

export const membersSchema = z.array(memberSchema).max(32).default([]);

export const affinitySchema = z.strictObject({
  by: z
    .enum(['agent', 'caller', 'none'])
    .default('agent')
    .describe('Which calls go to the member of their last call, so that prompt caches stay warm.'),
  for: durationSchema('1s', '24h')
    .default('5m')
    .describe('How long the member is remembered after the last call, as in `90s` or `5m`.'),
  wait: durationSchema('0s', '1h')
    .default('2s')
    .describe(
      'How long a call waits for its member while another one has room. `0s` means no wait.',
    ),
});

export type MemberConfig = z.output<typeof memberSchema>;

/** Id of a member: its name, or one derived from its upstream and secret. */
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
