import { notUnderstood, type ServerAnswer } from './server.ts';

/** A lease as Headgate granted it. */
export interface GrantedLease {
  /** Token for renewals and the release. Each renewal returns a new one. */
  readonly lease: string;
  readonly leaseIds: readonly string[];
  readonly groups: readonly string[];
  readonly member: string | null;
  readonly waitedMs: number;
  readonly lifetime: Lifetime;
}

interface Lifetime {
  /** When the lease expires unless it is renewed, on the monotonic clock of this process. */
  readonly endsAt: number;
  readonly renewWithinMs: number;
}

/** Parses a 201 response. */
export function granted(answer: ServerAnswer): GrantedLease {
  const { body, status } = answer;
  const { lease_ids: leaseIds, groups } = body;
  if (!Array.isArray(leaseIds) || !Array.isArray(groups)) throw notUnderstood(status);
  return {
    ...renewed(answer),
    leaseIds: leaseIds as string[],
    groups: groups as string[],
    member: (body['member'] as string | null | undefined) ?? null,
    waitedMs: Number(body['waited_ms'] ?? 0),
  };
}

/** Parses a renewal. The clocks of two machines differ, so the lifetime is counted from the time of the request. */
export function renewed({
  status,
  body,
  sentAt,
}: ServerAnswer): Pick<GrantedLease, 'lease' | 'lifetime'> {
  const { lease, expires_after_ms: expiresAfterMs, renew_within_ms: renewWithinMs } = body;
  const isOurs =
    typeof lease === 'string' && Number.isFinite(expiresAfterMs) && Number.isFinite(renewWithinMs);
  if (!isOurs) throw notUnderstood(status);
  const endsAt = sentAt + Number(expiresAfterMs);
  return { lease, lifetime: { endsAt, renewWithinMs: Number(renewWithinMs) } };
}

/** Parses the ticket of a 202 response. */
export function ticketIn({ status, body: { ticket } }: ServerAnswer): string {
  if (status !== 202 || typeof ticket !== 'string') throw notUnderstood(status);
  return ticket;
}
