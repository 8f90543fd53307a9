import type { Answer } from './server.ts';

/** A lease as Headgate gave it. */
export interface Granted {
  /** By what it is renewed and released; every renewal gives another one. */
  readonly lease: string;
  readonly leaseIds: readonly string[];
  readonly groups: readonly string[];
  readonly member: string | null;
  readonly waitedMs: number;
  readonly lifetime: Lifetime;
}

/** How long a lease lives from now on. */
export interface Lifetime {
  /** When it ends unless it is renewed, in epoch milliseconds of this machine. */
  readonly endsAt: number;
  readonly renewWithinMs: number;
}

/** Reads a 201. */
export function granted({ body, sentAt }: Answer): Granted {
  return {
    lease: String(body['lease']),
    leaseIds: body['lease_ids'] as readonly string[],
    groups: body['groups'] as readonly string[],
    member: (body['member'] as string | null | undefined) ?? null,
    waitedMs: Number(body['waited_ms'] ?? 0),
    lifetime: lifetimeOf({ body, sentAt }),
  };
}

/** Reads how long a lease lives. Clocks of two machines differ, so it counts from when it was asked for. */
export function lifetimeOf({ body, sentAt }: Pick<Answer, 'body' | 'sentAt'>): Lifetime {
  const renewWithinMs = Number(body['renew_within_ms']);
  return { endsAt: sentAt + Number(body['expires_after_ms']), renewWithinMs };
}
