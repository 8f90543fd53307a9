import type { RenewAnswer } from '../contract/rpc/group-rpc.ts';
import { isOutlivingReported, RENEWED_BEHIND_MS } from '../core/parts/bound.ts';
import type { GroupEvent } from '../core/events.ts';
import type { ActiveLease } from '../core/state.ts';
import type { Claim } from '../core/orphaned.ts';
import type { CallNotes } from '../core/words/call-notes.ts';
import type { LeaseId } from '../core/words/ids.ts';
import type { LeaseOutcome } from '../core/words/outcome.ts';
import { speaksForAll } from '../core/scopes.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Settlement } from '../core/words/usage.ts';
import type { Batch } from './batch.ts';
import { LeaseHandle, type LeaseKeeper } from './lease-handle.ts';
import type { LimitsSeen } from './observe/limits-seen.ts';
import type { ParkedAcquires } from './parked-acquires.ts';
import type { PoolVerification } from './pool-verification.ts';
import type { Renewals } from './renewals.ts';
import type { Shell } from './shell.ts';
import type { VerificationHost } from './verification-host.ts';

interface LeasesParts {
  readonly shell: Shell;
  readonly batch: Batch;
  readonly parked: ParkedAcquires;
  readonly renewals: Renewals;
  readonly verification: PoolVerification;
  readonly host: VerificationHost | null;
  readonly limitsSeen: LimitsSeen;
}

/**
 * The holders' side of a pool: the handles that they receive, and their requests through a handle or by a lease's id.
 */
export class Leases implements LeaseKeeper {
  readonly #parts: LeasesParts;
  readonly #keeper: LeaseKeeper;
  /** For each lease that is held by its id, the attachments of answers whose requests still use it. */
  readonly #answers = new Map<LeaseId, Set<number>>();

  constructor(parts: LeasesParts) {
    this.#parts = parts;
    this.#keeper = parts.host?.keeperFor(this) ?? this;
  }

  handle(id: LeaseId, attachment: number): LeaseHandle {
    if (this.#lease(id)?.isById === true) {
      const answers = this.#answers.get(id) ?? new Set();
      this.#answers.set(id, answers.add(attachment));
    }
    return new LeaseHandle(this.#keeper, id, attachment);
  }

  async renew(id: LeaseId, status: number | null): Promise<RenewAnswer> {
    const { shell, renewals, verification } = this.#parts;
    verification.note(status);
    shell.apply({ kind: 'renew', leaseId: id });
    const phase = shell.state.leases.get(id)?.phase ?? 'cooling';
    if (phase === 'cooling') return 'gone';
    if (phase === 'revoking') return 'revoking';
    const parked = renewals.park(id, shell.now());
    shell.arm();
    const answer = await parked;
    if (answer === 'ok') await this.verifyCurrent();
    return answer;
  }

  report(id: LeaseId, signal: UpstreamSignal, isRepeat: boolean, claim?: Claim): void {
    const { shell, limitsSeen } = this.#parts;
    const holder = shell.state.leases.get(id)?.holder ?? claim?.holder;
    const now = shell.now();
    // Operators see the limits as reported by the upstream, for all keys of the group.
    const isSeen = holder !== undefined && signal.reportedBy === undefined;
    if (isSeen && speaksForAll(shell.state, { holder }, now)) {
      limitsSeen.note(holder, signal.hints, now);
    }
    const reported = { signal, isRepeat, ...(claim === undefined ? {} : { claim }) };
    shell.apply({ kind: 'report', leaseId: id, ...reported });
  }

  release(
    id: LeaseId,
    outcome: LeaseOutcome,
    status: number | null,
    settlement: Settlement | null = null,
    isSole = false,
    notes?: CallNotes,
    attachment?: number,
  ): void {
    if (outcome === 'unused' && this.#answers.has(id)) {
      // Each request returns the lease before its answer is dropped. If two return it at once, the second one ends it.
      if (attachment !== undefined) this.#forget(id, attachment);
      // Another request holds the lease too, and continues with it.
      if (this.#isHeldElsewhere(id)) return;
      this.#parts.parked.noteReturned(id);
    }
    const reported = notes === undefined ? {} : { notes };
    this.#end({ kind: 'release', leaseId: id, outcome, status, settlement, isSole, ...reported });
  }

  /** Ends a lease for a holder whose handle no longer works. Another instance may have received its end. */
  releaseById(
    id: LeaseId,
    outcome: LeaseOutcome,
    status: number | null,
    settlement: Settlement | null = null,
    claim?: Claim,
    notes?: CallNotes,
  ): void {
    const end = { outcome, settlement, status, ...(claim === undefined ? {} : { claim }) };
    const reported = notes === undefined ? {} : { notes };
    this.#end({ kind: 'release', leaseId: id, ...end, ...reported });
  }

  #end(event: Extract<GroupEvent, { kind: 'release' }>): void {
    const { shell, verification } = this.#parts;
    const { outcome, status = null, settlement, leaseId } = event;
    const reserved = this.#lease(leaseId)?.reserved ?? null;
    verification.note(status);
    // No upstream status reports this end, but the charge must be kept.
    const isCharged = reserved !== null && (settlement ?? reserved).usd > 0;
    if (status === null && outcome === 'success' && isCharged) verification.accept();
    shell.apply(event);
  }

  /**
   * Waits until a recent write is confirmed. In an instance that was replaced the write fails, so its holders reach the
   * new instance before that grants their slots again.
   *
   * @param isById the lease is held by its id, so the disk must record that such holders may outlive the process
   */
  async verifyCurrent(isById = false): Promise<void> {
    const { shell, batch } = this.#parts;
    const { bound } = shell.state;
    const writtenAt = bound.confirmed?.at ?? -Infinity;
    const isReported = !isById || isOutlivingReported(bound);
    if (!bound.isStored || (isReported && shell.now() < writtenAt + RENEWED_BEHIND_MS)) return;
    await batch.written();
  }

  confirm(id: LeaseId): void {
    this.#parts.shell.apply({ kind: 'confirm', leaseId: id });
  }

  passOver(pool: string, forMs: number): void {
    this.#parts.shell.apply({ kind: 'pass_over', pool, forMs });
  }

  detach(id: LeaseId, attachment: number): void {
    this.#forget(id, attachment);
    this.#parts.shell.apply({ kind: 'detach', leaseId: id, attachment });
  }

  #forget(id: LeaseId, attachment: number): void {
    const answers = this.#answers.get(id);
    answers?.delete(attachment);
    if (answers?.size === 0) this.#answers.delete(id);
  }

  #lease(id: LeaseId): ActiveLease | undefined {
    return this.#parts.shell.state.leases.get(id);
  }

  /** Whether another request also holds a lease, or has confirmed it. */
  #isHeldElsewhere(id: LeaseId): boolean {
    return this.#answers.has(id) || this.#lease(id)?.waitsElsewhere === false;
  }
}
