import { RpcTarget } from 'cloudflare:workers';
import type {
  GiveBackRequest,
  KeepPrefetchAnswer,
  PrefetchReport,
  PrefetchRpc,
  RenewAnswer,
} from '../contract/rpc/group-rpc.ts';
import { isOfNewer } from '../core/orphaned.ts';
import type { LeaseId } from '../core/words/ids.ts';
import type { Leases } from './leases.ts';
import type { Renewals } from './renewals.ts';
import { claimsFrom } from './requests.ts';
import type { Shell } from './shell.ts';

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
