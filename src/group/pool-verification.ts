import { isTaken } from '../core/words/outcome.ts';
import type { DirectoryLink } from './directory-link.ts';
import type { RowWriter } from './row-writer.ts';
import type { Tables } from './tables.ts';
import type { VerificationHost } from './verification-host.ts';

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
