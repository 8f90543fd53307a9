import type { HandedPool, LeaseRpc } from '../contract/rpc/group-rpc.ts';
import { handedOf } from '../core/recover.ts';
import { confirmedControls } from '../core/reports.ts';
import type { Batch } from './batch.ts';
import type { DirectoryLink } from './directory-link.ts';
import { firstAttachment } from './lease-handle.ts';
import type { Leases } from './leases.ts';
import type { Proof } from './proof.ts';
import type { Shell } from './shell.ts';

interface HandOverParts {
  readonly shell: Shell;
  readonly link: DirectoryLink;
  readonly batch: Batch;
  readonly proof: Proof;
  readonly leases: Leases;
}

/** Both ends of the way of a pool from the object with all trials to its own. */
export class HandOver {
  readonly #parts: HandOverParts;
  #hasBegun = false;

  constructor(parts: HandOverParts) {
    this.#parts = parts;
  }

  /** The pool's own object decides from now on, or is about to. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Ends the trial: who waits, and who comes now, is sent to the pool's own object, which goes on with this. */
  begin(): HandedPool {
    const { shell, link } = this.#parts;
    this.#hasBegun = true;
    shell.apply({ kind: 'move' });
    const { leases, controls, totals, upstreams, nextAttachment } = shell.state;
    const { assumed } = link.definition;
    return {
      leases: [...leases.values()].map(handedOf),
      controls: confirmedControls(shell.state, controls, shell.now()),
      totals,
      upstreams,
      nextAttachment,
      assumed,
    };
  }

  /** Goes on with the trial, because the pool's own object could not take over. */
  takeBack(): void {
    this.#hasBegun = false;
  }

  /** Drops the leases that the pool's own object has taken over: holders are sent there. */
  end(): void {
    const { shell } = this.#parts;
    for (const id of shell.state.leases.keys()) {
      shell.apply({ kind: 'release', leaseId: id, outcome: 'unused', settlement: null });
    }
  }

  /** Takes over, in the pool's own object. */
  async receive({ assumed, ...handed }: HandedPool): Promise<LeaseRpc[]> {
    const { shell, link, batch, proof, leases } = this.#parts;
    link.assume(assumed);
    const isNew = !proof.isGiven;
    proof.give();
    const first = firstAttachment(shell.now());
    shell.apply({ kind: 'take_over', handed, isNew, firstAttachment: first });
    await batch.written();
    return handed.leases.map(({ id }) =>
      leases.handle(id, shell.state.leases.get(id)?.attachment ?? 0),
    );
  }
}
