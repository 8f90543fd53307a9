import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { storeSnapshot } from '../config/stored-snapshot.ts';
import { snapshotStoreOf, type Env } from '../env.ts';
import { pause } from '../runtime/background.ts';
import { logEvent } from '../runtime/log.ts';
import { steadyClock } from '../runtime/steady-clock.ts';

/** Minimum time between two writes: the store takes one a second of a key. */
const WRITE_EVERY_MS = 1_000;

/** Minimum time between two repairs: for as long the store may answer what was there before. */
const REPAIR_EVERY_MS = 60_000;

/**
 * Keeps the copy up to date that isolates begin with. A write that is lost is made good when one of them finds the copy
 * missing or old, and says so.
 */
export class Publisher {
  readonly #env: Env;
  readonly #snapshot: () => ConfigSnapshot;
  readonly #waitUntil: (work: Promise<unknown>) => void;
  #isWriting = false;
  #repairedAt = -Infinity;
  /** Tag of the last one that was written, or of the one before this instance: isolates tell if it was not. */
  #written: string | undefined;

  constructor(
    env: Env,
    snapshot: () => ConfigSnapshot,
    waitUntil: (work: Promise<unknown>) => void,
  ) {
    this.#env = env;
    this.#snapshot = snapshot;
    this.#waitUntil = waitUntil;
    this.#written = snapshot().tag;
  }

  /** Writes what has changed. */
  publish(): void {
    if (this.#isWriting || snapshotStoreOf(this.#env) === null) return;
    const { version, tag } = this.#snapshot();
    // Nobody begins with the empty one, which allows everybody everything.
    if (version === 0 || tag === this.#written) return;
    this.#isWriting = true;
    this.#waitUntil(this.#write());
  }

  /** Writes it once more, because an isolate found another one, or none (null). */
  repair(found: string | null): void {
    const now = steadyClock.now();
    if (found === this.#snapshot().tag || now - this.#repairedAt < REPAIR_EVERY_MS) return;
    this.#repairedAt = now;
    this.#written = undefined;
    this.publish();
  }

  async #write(): Promise<void> {
    const snapshot = this.#snapshot();
    this.#written = snapshot.tag;
    try {
      await storeSnapshot(this.#env, snapshot);
    } catch (error) {
      logEvent('snapshot_unwritten', { error: String(error) });
    }
    await pause(WRITE_EVERY_MS);
    this.#isWriting = false;
    this.publish();
  }
}
