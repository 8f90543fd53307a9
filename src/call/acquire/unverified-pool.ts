import type { ListedPool } from '../../contract/rpc/directory-rpc.ts';
import type {
  AcquireAnswer,
  AcquireRequest,
  GiveBackRequest,
  GroupRpc,
  KeepPrefetchAnswer,
  PrefetchReport,
  RenewByIdAnswer,
  ResumeAnswer,
  ResumeRequest,
} from '../../contract/rpc/group-rpc.ts';
import type { PoolStatus } from '../../contract/status.ts';
import type { VerificationRpc } from '../../contract/rpc/verification-rpc.ts';
import type { CallNotes, LeaseOutcome } from '../../core/words/outcome.ts';
import type { UpstreamSignal } from '../../core/words/signal.ts';
import type { Settlement } from '../../core/words/ticket.ts';
import type { Placement } from '../../routing/placement.ts';
import { noteVerified } from '../identity/verified-pools.ts';

export type CallPool = Pick<
  GroupRpc,
  | 'acquire'
  | 'cancel'
  | 'release'
  | 'report'
  | 'resume'
  | 'renew'
  | 'keepPrefetch'
  | 'giveBack'
  | 'status'
>;

interface UnverifiedPoolAccess {
  readonly of: ListedPool;
  readonly trials: () => VerificationRpc;
  /** Where the pool is once it has its own object. */
  readonly find: () => Promise<Placement>;
  readonly stubOf: (at: Placement) => GroupRpc;
}

/** A pool that counts as unverified until the shared object reports otherwise. From then on its own object is asked. */
export class UnverifiedPool implements CallPool {
  readonly #ways: UnverifiedPoolAccess;
  #own: Placement | null = null;

  constructor(ways: UnverifiedPoolAccess) {
    this.#ways = ways;
  }

  async acquire(request: AcquireRequest): Promise<AcquireAnswer> {
    if (this.#own === null) {
      const answer = await this.#ways.trials().acquire(request);
      if (answer.kind !== 'proved') return answer;
    }
    const { group, partition } = await this.#findOwn();
    return this.#stub().acquire({ ...request, group, partition });
  }

  async resume(request: ResumeRequest): Promise<ResumeAnswer> {
    if (this.#own === null) {
      const answer = await this.#ways.trials().resume(request);
      if (answer.kind !== 'proved') return answer;
    }
    const { group, partition } = await this.#findOwn();
    return this.#stub().resume({ ...request, group, partition });
  }

  async renew(
    leaseId: string,
    status: number | null,
    held: ResumeRequest,
  ): Promise<RenewByIdAnswer> {
    if (this.#own === null) {
      const answer = await this.#ways.trials().renew(leaseId, status, held);
      if (answer.kind !== 'proved') return answer;
    }
    const { group, partition } = await this.#findOwn();
    return this.#stub().renew(leaseId, status, { ...held, group, partition });
  }

  cancel(ticketId: string): Promise<void> {
    if (this.#own !== null) return this.#stub().cancel(ticketId);
    return this.#ways.trials().cancel(this.#ways.of, ticketId);
  }

  release(
    leaseId: string,
    outcome: LeaseOutcome,
    status: number | null,
    settlement?: Settlement,
    held?: ResumeRequest,
    notes?: CallNotes,
  ): Promise<void> {
    const { of, trials: verifications } = this.#ways;
    const end = [leaseId, outcome, status, settlement, held, notes] as const;
    return this.#own === null ? verifications().release(of, ...end) : this.#stub().release(...end);
  }

  report(
    leaseId: string,
    signal: UpstreamSignal,
    isRepeat: boolean,
    held?: ResumeRequest,
  ): Promise<void> {
    const { of, trials } = this.#ways;
    const report = [leaseId, signal, isRepeat, held] as const;
    return this.#own === null ? trials().report(of, ...report) : this.#stub().report(...report);
  }

  /** Nothing is prefetched from a pool without storage. */
  keepPrefetch(report: PrefetchReport): Promise<KeepPrefetchAnswer> {
    return this.#stub().keepPrefetch(report);
  }

  giveBack(request: GiveBackRequest): Promise<void> {
    return this.#stub().giveBack(request);
  }

  status(): Promise<PoolStatus> {
    if (this.#own !== null) return this.#stub().status();
    return this.#ways.trials().status(this.#ways.of);
  }

  async #findOwn(): Promise<Placement> {
    if (this.#own === null) {
      const { of, find } = this.#ways;
      noteVerified(of);
      this.#own ??= await find();
    }
    return this.#own;
  }

  #stub(): GroupRpc {
    const { of, stubOf } = this.#ways;
    if (this.#own === null) throw new Error(`the pool of group ${of.group} is unverified`);
    return stubOf(this.#own);
  }
}
