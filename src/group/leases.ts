import type { RenewAnswer } from '../contract/rpc/group-rpc.ts';
import type { LeaseId } from '../core/words/ids.ts';
import type { Outcome } from '../core/words/outcome.ts';
import type { UpstreamSignal } from '../core/words/signal.ts';
import type { Settlement } from '../core/words/usage.ts';
import { LeaseHandle, type LeaseKeeper } from './lease-handle.ts';
import type { Proof } from './proof.ts';
import type { Renewals } from './renewals.ts';
import type { Shell } from './shell.ts';
import type { GroupStore } from './store.ts';
import type { TrialHost } from './trial-host.ts';

interface LeasesParts {
  readonly shell: Shell;
  readonly store: GroupStore;
  readonly renewals: Renewals;
  readonly proof: Proof;
  readonly host: TrialHost | null;
}

/** Holders' side of a pool: the handles that they get, and what they say through them or by a lease's id. */
export class Leases implements LeaseKeeper {
  readonly #parts: LeasesParts;
  readonly #keeper: LeaseKeeper;

  constructor(parts: LeasesParts) {
    this.#parts = parts;
    this.#keeper = parts.host?.keeperFor(this) ?? this;
  }

  /** Makes an answer's handle on a lease. */
  handle(id: LeaseId, attachment: number): LeaseHandle {
    return new LeaseHandle(this.#keeper, id, attachment);
  }

  async renew(id: LeaseId, status: number | null): Promise<RenewAnswer> {
    const { shell, store, renewals, proof } = this.#parts;
    proof.note(status);
    shell.apply({ kind: 'renew', leaseId: id });
    const phase = shell.state.leases.get(id)?.phase ?? 'cooling';
    if (phase === 'cooling') return 'gone';
    if (phase === 'revoking') return 'revoking';
    const parked = renewals.park(id, shell.now());
    shell.arm();
    const answer = await parked;
    if (answer === 'ok') store.heartbeat(shell.now());
    return answer;
  }

  report(id: LeaseId, signal: UpstreamSignal, isRepeat: boolean): void {
    this.#parts.shell.apply({ kind: 'report', leaseId: id, signal, isRepeat });
  }

  release(
    id: LeaseId,
    outcome: Outcome,
    status: number | null,
    settlement: Settlement | null = null,
  ): void {
    const { shell, proof } = this.#parts;
    proof.note(status);
    shell.apply({ kind: 'release', leaseId: id, outcome, settlement, status });
  }

  confirm(id: LeaseId): void {
    this.#parts.shell.apply({ kind: 'confirm', leaseId: id });
  }

  detach(id: LeaseId, attachment: number): void {
    this.#parts.shell.apply({ kind: 'detach', leaseId: id, attachment });
  }
}
