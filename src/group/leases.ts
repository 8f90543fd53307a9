import { RpcTarget } from 'cloudflare:workers';
import type {
  RenewAnswer,
  GiveBackRequest,
  KeepPrefetchAnswer,
  PrefetchReport,
  PrefetchRpc,
} from '../contract/rpc/group-rpc.ts';
import { isOutlivingReported, RENEWED_BEHIND_MS } from '../core/parts/bound.ts';
import type { GroupEvent } from '../core/events.ts';
import type { ActiveLease } from '../core/state.ts';
import { isOfNewer, type Claim } from '../core/orphaned.ts';
import { isTaken, type CallNotes, type LeaseOutcome } from '../core/words/outcome.ts';
import type { LeaseId } from '../core/words/ids.ts';
import { speaksForAll } from '../core/scopes.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Settlement } from '../core/words/ticket.ts';
import type { LimitsSeen } from './observe/limit-status.ts';
import type { Batch } from './batch.ts';
import { LeaseHandle, type LeaseKeeper, type VerificationHost } from './lease-handle.ts';
import type { ParkedAcquires, Renewals } from './parked.ts';
import type { Shell } from './shell.ts';
import { claimsFrom } from './requests.ts';
import type { DirectoryLink } from './directory-link.ts';
import type { RowWriter } from './effects.ts';
import type { Tables } from './store.ts';

/** What holders do with their leases: renew, report and release them, and prefetched slots. */

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
    const { outcome, status = null, settlement, leaseId: lease } = event;
    const reserved = this.#lease(lease)?.reserved ?? null;
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

interface PrefetchesParts {
  readonly shell: Shell;
  readonly renewals: Renewals;
  readonly leases: Leases;
}

/** The isolates' side of a pool: prefetched slots that they keep and return. */
export class Prefetches {
  readonly #parts: PrefetchesParts;

  constructor(parts: PrefetchesParts) {
    this.#parts = parts;
  }

  async keep(report: PrefetchReport): Promise<KeepPrefetchAnswer> {
    const { shell, leases } = this.#parts;
    const { loan: id } = report;
    shell.apply({ kind: 'keep_loan', loanId: id, isNew: true, told: report });
    const prefetch = shell.state.lending.loans.get(id);
    if (prefetch === undefined) return { kind: 'gone' };
    const { attachment } = prefetch;
    await leases.verifyCurrent();
    return { kind: 'kept', loan: new PrefetchHandle(this, id, attachment) };
  }

  async renew(id: LeaseId, report: PrefetchReport): Promise<RenewAnswer> {
    const { shell, renewals, leases } = this.#parts;
    shell.apply({ kind: 'keep_loan', loanId: id, isNew: false, told: report });
    const prefetch = shell.state.lending.loans.get(id);
    if (prefetch === undefined) return 'gone';
    if (prefetch.isRecalled) return 'revoking';
    const parked = renewals.park(id, shell.now());
    shell.arm();
    const answer = await parked;
    if (answer === 'ok') await leases.verifyCurrent();
    return answer;
  }

  /** @throws if a newer instance has replaced this one and prefetched some of the slots */
  giveBack(request: GiveBackRequest): void {
    const { shell } = this.#parts;
    const claims = claimsFrom(request);
    if (claims.some((claim) => isOfNewer(shell.state, claim))) {
      throw new Error('a newer instance has prefetched the slots');
    }
    shell.apply({ kind: 'give_back', loanId: request.loan, claims, told: request });
  }

  leave(id: LeaseId, attachment: number): void {
    this.#parts.shell.apply({ kind: 'leave_loan', loanId: id, attachment });
  }
}

/** The answer through which a request keeps prefetched slots. */
class PrefetchHandle extends RpcTarget implements PrefetchRpc {
  readonly #prefetches: Prefetches;
  readonly #id: LeaseId;
  readonly #attachment: number;

  constructor(prefetches: Prefetches, id: LeaseId, attachment: number) {
    super();
    this.#prefetches = prefetches;
    this.#id = id;
    this.#attachment = attachment;
  }

  renew(report: PrefetchReport): Promise<RenewAnswer> {
    return this.#prefetches.renew(this.#id, report);
  }

  [Symbol.dispose](): void {
    this.#prefetches.leave(this.#id, this.#attachment);
  }
}

interface PoolVerificationParts {
  readonly tables: Tables;
  readonly rows: RowWriter;
  readonly link: DirectoryLink;
  /** null if the pool has its own object. */
  readonly host: VerificationHost | null;
}

/** Records the first success of a pool (2xx or 101). From then on the pool is stored and listed. */
export class PoolVerification {
  readonly #parts: PoolVerificationParts;

  constructor(parts: PoolVerificationParts) {
    this.#parts = parts;
  }

  get isStored(): boolean {
    return this.#parts.tables.isOpen;
  }

  note(status: number | null): void {
    if (status !== null && isTaken(status)) this.accept();
  }

  /** Stores and lists the pool, or starts its hand-over to an object that does. */
  accept(): void {
    const { rows, link, host } = this.#parts;
    if (host !== null) return host.onVerified();
    link.listing.noteSuccess();
    if (!this.isStored) rows.open();
  }
}
