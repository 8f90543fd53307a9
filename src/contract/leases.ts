import * as z from 'zod';
import { OUTCOMES_REPORTED } from '../core/words/outcome.ts';
import { LANES } from '../core/words/ticket.ts';
import { waitCauseSchema } from './decisions.ts';
import type { Frozen } from './frozen.ts';

/**
 * Leases that a caller asks for by itself, for calls that Headgate cannot pass on: bodies of `/leases` and `/tickets`,
 * and their answers.
 */

const count = z.int().min(0);
const ms = z.int().min(0);
/** Maximum tokens of one call: far more than any model accepts. */
const TOKENS_MAX = 10_000_000;
const tokens = count.max(TOKENS_MAX);
const name = z.string().min(1).max(256);

/** Maximum length of a token that is sent back: our own are far shorter. */
export const TOKEN_LENGTH_MAX = 8_192;
const token = z.string().min(1).max(TOKEN_LENGTH_MAX);

const instant = z
  .union([z.number(), z.string()])
  .transform((at) => (typeof at === 'number' ? at : Date.parse(at)))
  .refine((at) => Number.isFinite(at), 'expected epoch milliseconds or an RFC 3339 time');

const usageSchema = z
  .strictObject({
    input_tokens: tokens
      .exactOptional()
      .meta({ description: 'Input tokens, those from a cache among them.', unit: 'tokens' }),
    output_tokens: tokens
      .exactOptional()
      .meta({ description: 'Output tokens, reasoning among them.', unit: 'tokens' }),
    cached_tokens: tokens.exactOptional().meta({
      description: 'Input tokens that came from a cache.',
      unit: 'tokens',
    }),
  })
  .describe(
    'Usage of the call, as its provider counted it. It is charged if the key has `allow: [lease_usage]`; otherwise the reservation is charged.',
  );

/** `POST /leases`. */
export const leaseRequestSchema = z
  .strictObject({
    group: name
      .exactOptional()
      .describe('The group in which a slot is wanted. Either this, or `upstream`.'),
    upstream: name
      .exactOptional()
      .describe(
        'The upstream that the call goes to: its groups are found as those of a proxied call.',
      ),
    model: name
      .exactOptional()
      .describe('The model that the call is for, by which groups are found and prices known.'),
    lane: z.enum(LANES).exactOptional().describe('The lane, as in `headgate-lane`.'),
    agent: z
      .string()
      .max(200)
      .exactOptional()
      .describe('The agent run that the call belongs to, as in `headgate-agent`.'),
    agent_started_at: instant
      .exactOptional()
      .describe('When that run began: epoch milliseconds, or RFC 3339.'),
    slots: z.int().min(1).max(9_999).exactOptional().meta({
      description: 'Slots that the call takes, as in `headgate-weight`. Absent: 1.',
      unit: 'slots',
    }),
    max_wait_ms: ms.exactOptional().meta({
      description:
        'How long it may wait, from its first request on. 0: not at all. Absent: as long as the group allows.',
      unit: 'ms',
    }),
    estimate: z
      .strictObject({
        input_tokens: tokens.exactOptional().meta({
          description: 'Expected input tokens. 0 or absent: unknown, which reserves 16,384.',
          unit: 'tokens',
        }),
        output_tokens: tokens
          .exactOptional()
          .meta({ description: 'The most output tokens that it will use.', unit: 'tokens' }),
      })
      .exactOptional()
      .describe('What is reserved of limits of tokens and of budgets until `usage` says better.'),
    parents: z
      .array(z.string().min(1).max(100))
      .max(4)
      .exactOptional()
      .describe('Ids of leases of the call that this one is made for, as in `headgate-parent`.'),
    ticket: token
      .exactOptional()
      .describe(
        'What a 202, or a report, gave: asks again, with the same body, and keeps place and age.',
      ),
  })
  .refine(({ group, upstream }) => (group === undefined) !== (upstream === undefined), {
    path: ['group'],
    error: 'expected either group or upstream',
  });

/** 201 of `POST /leases`. */
export const leaseAnswerSchema = z.object({
  lease: z
    .string()
    .describe(
      'What the lease is renewed, reported on and released by. Opaque, and of this caller alone.',
    ),
  lease_ids: z.array(z.string()).describe('Ids of the lease in its groups, as operators see them.'),
  groups: z.array(z.string()).describe('The groups in which it holds slots, narrow first.'),
  member: z
    .string()
    .nullable()
    .describe('The member of its group that the call goes to. Null: its group names none.'),
  expires_at: z.iso
    .datetime()
    .describe('When it lapses unless it is renewed, by the clock of Headgate.'),
  expires_after_ms: ms.meta({
    description: 'The same, from when the request was sent: for those whose clocks differ.',
    unit: 'ms',
  }),
  renew_within_ms: ms.meta({ description: 'How soon it is to be renewed.', unit: 'ms' }),
  waited_ms: ms.meta({ description: 'How long it waited, from its first request on.', unit: 'ms' }),
});

/** 202 of `POST /leases`. */
export const ticketAnswerSchema = z.object({
  ticket: z
    .string()
    .describe(
      'Send it with the same body after `retry_after_ms`. The place is kept until five seconds after that, its age forever.',
    ),
  position: count.nullable().describe('Waiters ahead of it. Null: not known.'),
  estimate_ms: ms.nullable().meta({
    description:
      'How long it will probably wait from now on. null if nothing is known of it: no call has ended for long, or an operator ends the wait.',
    unit: 'ms',
  }),
  group: z.string().describe('The group that it waits in, of those that it needs slots of.'),
  waits_for: waitCauseSchema.exactOptional().describe('Why it waits now. Absent: not known.'),
  retry_after_ms: ms.meta({
    description:
      'When to retry. 0: at once. 3000: a newer request for the same ticket waits instead of this one.',
    unit: 'ms',
  }),
});

/** 200 of `PUT /leases/{lease}`. */
export const renewalAnswerSchema = leaseAnswerSchema.pick({
  lease: true,
  expires_at: true,
  expires_after_ms: true,
  renew_within_ms: true,
});

/** `PATCH /leases/{lease}`. */
export const reportRequestSchema = z
  .strictObject({
    status: z
      .int()
      .min(100)
      .max(599)
      .exactOptional()
      .describe('Status of the provider’s answer. Absent: there was none.'),
    headers: z
      .record(z.string().max(256), z.string().max(4_096))
      .refine((all) => Object.keys(all).length <= 200, 'expected 200 headers at the most')
      .exactOptional()
      .describe('Headers of that answer: waits and limits are read of them.'),
    error: z
      .union([z.string().max(65_536), z.record(z.string(), z.unknown())])
      .exactOptional()
      .describe('Body of an answer that is an error, or the message of a connection that broke.'),
  })
  .refine(({ status, error }) => status !== undefined || error !== undefined, {
    path: ['status'],
    error: 'expected status, or error where there was no answer',
  });

/** 200 of `PATCH /leases/{lease}`. */
export const reportAnswerSchema = z.object({
  action: z
    .enum(['go_on', 'again', 'stop'])
    .describe(
      '`go_on`: the lease lives on. `again`: the slot went back; wait, then ask with `ticket`. `stop`: the slot went back, and another try does not help.',
    ),
  after_ms: ms.meta({ description: 'How long to wait before that.', unit: 'ms' }),
  ticket: z
    .string()
    .exactOptional()
    .describe('Of `again`: to be sent with the same body, and keeps the age.'),
});

/** `DELETE /leases/{lease}`: the body may be left out. */
export const releaseRequestSchema = z.strictObject({
  outcome: z
    .enum(OUTCOMES_REPORTED)
    .exactOptional()
    .describe('How the call ended. Absent: `success`.'),
  usage: usageSchema.exactOptional(),
});

export type LeaseRequestBody = Frozen<z.output<typeof leaseRequestSchema>>;
export type LeaseAnswer = Frozen<z.output<typeof leaseAnswerSchema>>;
export type TicketAnswer = Frozen<z.output<typeof ticketAnswerSchema>>;
export type RenewalAnswer = Frozen<z.output<typeof renewalAnswerSchema>>;
export type ReportRequest = Frozen<z.output<typeof reportRequestSchema>>;
export type ReportAnswer = Frozen<z.output<typeof reportAnswerSchema>>;
export type ReleaseRequest = Frozen<z.output<typeof releaseRequestSchema>>;
