import type { AcquireRequest, ResumeRequest } from '../../src/contract/rpc/group-rpc.ts';
import {
  instant,
  ticketId,
  type InstantMs,
  type LeaseId,
  type MemberId,
  type TicketId,
} from '../../src/core/words/ids.ts';
import type { Holder, Ticket } from '../../src/core/words/ticket.ts';
import { leaseOf } from '../../src/routing/held-lease.ts';

/** Messages to a pool from flat fields. Tests need not know which record a field belongs to. */

/** The same type with plain texts and numbers for ids and instants. */
type Plain<T> = T extends TicketId | LeaseId | MemberId
  ? string
  : T extends InstantMs
    ? number
    : T extends readonly (infer Item)[]
      ? readonly Plain<Item>[]
      : T extends object
        ? { readonly [Key in keyof T]: Plain<T[Key]> }
        : T;

type OwnFields = Omit<AcquireRequest, 'ticket'>;
type TicketFields = Omit<Ticket, 'id' | 'holder'>;

export type RequestFields = Plain<Partial<OwnFields & TicketFields & Holder>>;

const OWN: ReadonlySet<string> = new Set<keyof OwnFields>([
  ...(['version', 'group', 'partition', 'assumed', 'configVersion', 'sinceVersion'] as const),
  ...(['attempt', 'sentAt', 'clockAheadMs', 'sliceMs', 'mayAskLater', 'isAnew'] as const),
  'passedUnlimited',
]);

const OF_HOLDER: ReadonlySet<string> = new Set<keyof Holder>([
  ...(['tenant', 'agent', 'session', 'caller', 'upstream', 'model', 'kind', 'tier'] as const),
  ...(['credential', 'isUnread'] as const),
]);

/** An acquire call of one slot by `caller`. */
export function acquireRequest(
  group: string,
  ticket: string,
  fields: RequestFields = {},
): AcquireRequest {
  const { caller = 'caller', configVersion = 1 } = fields;
  const given = Object.entries(fields);
  const own = given.filter(([key]) => OWN.has(key));
  const holder = given.filter(([key]) => OF_HOLDER.has(key));
  const others = given.filter(([key]) => !OWN.has(key) && !OF_HOLDER.has(key));
  const at = { upstream: 'openai', model: 'gpt-4o' };
  return {
    version: 1,
    group,
    partition: null,
    assumed: null,
    configVersion,
    sinceVersion: configVersion,
    attempt: 1,
    sliceMs: 60_000,
    mayAskLater: false,
    passedUnlimited: 0,
    ticket: {
      id: ticketId(ticket),
      holder: { caller, tenant: caller, agent: null, ...at, ...Object.fromEntries(holder) },
      lane: 'normal',
      slots: 1,
      enqueuedAt: instant(Date.now()),
      agentStartedAt: null,
      deadlineAt: null,
      wait: true,
      isTry: false,
      waitsElsewhere: false,
      parents: [],
      estimate: null,
      ...Object.fromEntries(others),
    },
    ...Object.fromEntries(own),
  };
}

export type ClaimFields = Plain<Partial<Omit<ResumeRequest, 'holder'> & Holder>>;

/** Fields of an answer by which a holder knows its lease. The attachment is null if it is unknown. */
export type GrantedFields = Plain<Omit<Parameters<typeof leaseOf>[1], 'attachment'>> &
  Pick<ResumeRequest, 'attachment'>;

/** A granted lease as its holder reports it to an instance that may not know it. */
export function heldBy(
  group: string,
  granted: GrantedFields,
  fields: ClaimFields = {},
): ResumeRequest {
  const [ticket = ''] = granted.leaseId.split('.');
  const given = Object.entries(fields);
  const ofHolder = Object.fromEntries(given.filter(([key]) => OF_HOLDER.has(key)));
  const own = Object.fromEntries(given.filter(([key]) => !OF_HOLDER.has(key)));
  const asked = acquireRequest(group, ticket, ofHolder);
  const lease = leaseOf(asked, granted as Parameters<typeof leaseOf>[1]);
  return { ...lease, hasLapsed: false, heldMs: 0, ...own };
}
