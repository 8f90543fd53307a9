import type { RenewByIdAnswer, ResumeRequest } from '../contract/rpc/group-rpc.ts';
import { countsUntil } from '../core/parts/bound.ts';
import { isOfNewer } from '../core/orphaned.ts';
import type { LeaseId } from '../core/words/ids.ts';
import type { AcquireCalls } from './acquire-calls.ts';
import type { Leases } from './leases.ts';
import type { ParkedAcquires } from './parked-acquires.ts';
import type { PoolVerification } from './pool-verification.ts';
import { expiryBy } from './requests.ts';
import type { Shell } from './shell.ts';

interface LeasesByIdParts {
  readonly shell: Shell;
  readonly parked: ParkedAcquires;
  readonly acquires: AcquireCalls;
  readonly leases: Leases;
  readonly verification: PoolVerification;
}

/** Serves holders that hold leases only by their ids. No call of theirs is parked between two renewals. */
export class LeasesById {
  readonly #parts: LeasesByIdParts;

  constructor(parts: LeasesByIdParts) {
    this.#parts = parts;
  }

  /** @throws if a newer instance has replaced this one and granted the lease */
  async renew(id: LeaseId, status: number | null, held: ResumeRequest): Promise<RenewByIdAnswer> {
    const { shell, parked, acquires, leases, verification } = this.#parts;
    const arrivedAt = shell.now();
    const claim = { ...held, isById: true };
    if (isOfNewer(shell.state, claim)) throw new Error('a newer instance has granted the lease');
    verification.note(status);
    shell.apply({ kind: 'renew', leaseId: id, claim });
    const lease = shell.state.leases.get(id);
    if (lease?.phase === 'revoking') return { kind: 'revoking' };
    if (lease?.phase === 'cooling') return parked.gone();
    if (lease !== undefined) {
      const { attachment, until } = lease;
      await leases.verifyCurrent(true);
      const expiresAt = countsUntil(shell.state.bound, until);
      return { kind: 'ok', attachment, expiresAt: expiryBy(held.sentAt, arrivedAt, expiresAt) };
    }
    const taken = await acquires.resume(claim);
    if (taken.kind === 'gone') return taken;
    const { attachment, expiresAt = shell.now() } = taken;
    return { kind: 'ok', attachment, expiresAt: expiryBy(held.sentAt, arrivedAt, expiresAt) };
  }
}
