import { notUnderstood, type ServerAnswer } from './server.ts';

/** A lease as Headgate gave it. */
export interface GrantedLease {
  /** By what it is renewed and released; every renewal gives another one. */
  readonly lease: string;
  readonly leaseIds: readonly string[];
  readonly groups: readonly string[];
  readonly member: string | null;
  readonly waitedMs: number;
  readonly lifetime: Lifetime;
}

/** How long a lease lives from now on. */
interface Lifetime {
  /** When it ends unless it is renewed, in epoch milliseconds of this machine. */
  readonly endsAt: number;
  readonly renewWithinMs: number;
}

/** Reads a 201. */
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

/** Reads a renewal. Clocks of two machines differ, so its time counts from when it was asked for. */
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

/** Reads the ticket of a 202. */
export function ticketIn({ status, body: { ticket } }: ServerAnswer): string {
  if (status !== 202 || typeof ticket !== 'string') throw notUnderstood(status);
  return ticket;
}
