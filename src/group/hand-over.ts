import type { HandedPool, LeaseRpc } from '../contract/rpc/group-rpc.ts';
import { BoundedSet } from '../core/parts/bounded-map.ts';
import { handedGroupOf } from '../core/take-over.ts';
import type { Batch } from './batch.ts';
import type { DirectoryLink } from './directory-link.ts';
import { firstAttachment } from './lease-handle.ts';
import type { Leases } from './leases.ts';
import type { Observation } from './observe/observation.ts';
import type { PoolVerification } from './pool-verification.ts';
import type { Shell } from './shell.ts';

/** Maximum hand-overs that an object remembers. The shared pool of many partitions receives many. */
const VERIFICATIONS_MAX = 1_000;

interface HandOverParts {
  readonly shell: Shell;
  readonly link: DirectoryLink;
  readonly batch: Batch;
  readonly observation: Observation;
  readonly verification: PoolVerification;
  readonly leases: Leases;
}

/** Both sides of the hand-over of a verified pool from the object with all unverified pools to its own object. */
export class HandOver {
  readonly #parts: HandOverParts;
  readonly #verificationId = crypto.randomUUID();
  readonly #received = new BoundedSet<string>(VERIFICATIONS_MAX);
  #hasBegun = false;

  constructor(parts: HandOverParts) {
    this.#parts = parts;
  }

  /** Whether the pool's own object decides from now on, or is about to. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /**
   * Starts the hand-over. Waiting and new calls are sent to the pool's own object, which continues with the returned
   * state.
   */
  begin(): HandedPool {
    const { shell, link, observation } = this.#parts;
    this.#hasBegun = true;
    shell.apply({ kind: 'move' });
    return {
      ...handedGroupOf(shell.state, shell.now()),
      trialId: this.#verificationId,
      assumed: link.definition.assumed,
      definition: link.pushed,
      calls: observation.callLines,
    };
  }

  /** Continues here, because the pool's own object could not take over. */
  cancel(): void {
    this.#hasBegun = false;
  }

  /** Drops the leases that the pool's own object has taken over. Their holders are redirected to it. */
  end(): void {
    const { shell } = this.#parts;
    for (const id of shell.state.leases.keys()) {
      shell.apply({ kind: 'release', leaseId: id, outcome: 'unused', settlement: null });
    }
  }

  /** Receives a handed-over pool in its own object. */
  async receive(handed: HandedPool): Promise<LeaseRpc[]> {
    const { shell, link, batch, observation, verification, leases } = this.#parts;
    const { trialId: verificationId, assumed, definition, calls, ...group } = handed;
    if (definition !== null) link.take(definition);
    link.assume(assumed);
    const isNew = !verification.isStored;
    const isRepeat = this.#received.has(verificationId);
    this.#received.add(verificationId);
    if (!isRepeat) observation.adoptCalls(calls);
    verification.accept();
    const first = firstAttachment(shell.now());
    shell.apply({ kind: 'take_over', handed: group, isNew, isRepeat, firstAttachment: first });
    await batch.written();
    return group.leases.map(({ id }) =>
      leases.handle(id, shell.state.leases.get(id)?.attachment ?? 0),
    );
  }
}
