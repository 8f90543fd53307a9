import { KeyNames } from '../json/json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-syntax.ts';
import { JsonWalk } from '../json/json-walk.ts';
import { SCAN_BYTES_MAX } from './body-budget.ts';
import { packingsOf, type Packing } from './packing.ts';
import { UnpackError, Unpacker } from './unpacker.ts';
import { MORE, unreadable, type ModelScan, type ScanState } from './model-scan.ts';

/** Scans of a body through its encoding: the scan that any reader may use, and the one for the session of a call. */

export interface BodyScan {
  readonly state: ScanState;
  /** Whether positions in the state refer to the body as it was received. */
  readonly isPlain: boolean;
  /** Whether further bytes may change the state. */
  readonly goesOn: boolean;
  /** Number of trailing bytes that belong to something undecided. */
  readonly undecidedBytes: number;
  push(bytes: Uint8Array): Promise<void>;
  end(): Promise<ScanState>;
  /** Ends the scan early. Nothing may be pushed afterwards. */
  close(): void;
}

/** Wraps a scan so that it receives the decoded body. null if the `content-encoding` cannot be decoded. */
export function scanEncoded(scan: ModelScan, contentEncoding: string | null): BodyScan | null {
  const packings = packingsOf(contentEncoding);
  if (packings === null) return null;
  return packings.length === 0 ? new PlainScan(scan) : new UnpackingScan(scan, packings);
}

class PlainScan implements BodyScan {
  readonly isPlain = true;
  readonly #scan: ModelScan;
  #state: ScanState = MORE;

  constructor(scan: ModelScan) {
    this.#scan = scan;
  }

  get goesOn(): boolean {
    return this.#scan.goesOn;
  }

  get undecidedBytes(): number {
    return this.#scan.undecidedBytes;
  }

  get state(): ScanState {
    return this.#state;
  }

  push(bytes: Uint8Array): Promise<void> {
    this.#state = this.#scan.push(bytes);
    return Promise.resolve();
  }

  end(): Promise<ScanState> {
    this.#state = this.#scan.end();
    return Promise.resolve(this.#state);
  }

  close(): void {
    // There is nothing to release.
  }
}

class UnpackingScan implements BodyScan {
  readonly isPlain = false;
  /** Their position in the compressed bytes is unknown. */
  readonly undecidedBytes = 0;
  readonly #scan: ModelScan;
  readonly #unpacker: Unpacker;
  #scanned = 0;
  #state: ScanState = MORE;
  /** Whether decompression failed or was stopped. */
  #isLost = false;

  constructor(scan: ModelScan, packings: readonly Packing[]) {
    this.#scan = scan;
    this.#unpacker = new Unpacker(packings, (bytes) => this.#take(bytes));
  }

  get goesOn(): boolean {
    return !this.#isLost && this.#scan.goesOn;
  }

  get state(): ScanState {
    return this.#state;
  }

  async push(bytes: Uint8Array): Promise<void> {
    await this.#unpack(this.#unpacker.push(bytes));
  }

  async end(): Promise<ScanState> {
    await this.#unpack(this.#unpacker.end());
    if (this.goesOn) this.#state = this.#scan.end();
    return this.#state;
  }

  close(): void {
    this.#unpacker.close();
  }

  async #unpack(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      const why = error instanceof UnpackError ? error.message : 'it could not be decompressed';
      if (this.goesOn) this.#lose(why);
    }
  }

  #take(bytes: Uint8Array): void {
    if (!this.goesOn) {
      this.#unpacker.close();
      return;
    }
    this.#scanned += bytes.length;
    this.#state = this.#scan.push(bytes);
    if (this.goesOn && this.#scanned >= SCAN_BYTES_MAX) {
      this.#lose(`it has more than ${SCAN_BYTES_MAX} bytes after decompression`);
    }
  }

  #lose(why: string): void {
    this.#state = unreadable(why);
    this.#isLost = true;
    this.#unpacker.close();
  }
}

/**
 * Fields in which clients name their user or session, in order of preference. A user gets one share, however many
 * conversations it opens. `docs/client-headers.md` lists which clients send which field.
 */
const FIELDS = [
  'safety_identifier',
  'user',
  'metadata.user_id',
  'user_id',
  'session_id',
  'metadata.session_id',
  'litellm_session_id',
  'conversation',
  'conversation.id',
  'conversation_id',
  'prompt_cache_key',
  'previous_response_id',
  'previous_interaction_id',
];

const RANKS: ReadonlyMap<string, number> = new Map(FIELDS.map((field, rank) => [field, rank]));

/** Fields that may be objects with a nested field. */
const CONTAINERS: ReadonlySet<string> = new Set(['metadata', 'conversation']);

const KEYS = new KeyNames(FIELDS.flatMap((field) => field.split('.')).concat(...CONTAINERS));

/** Maximum length of a value in bytes. The rest of a longer value is ignored. */
const VALUE_BYTES_MAX = 512;

/**
 * Maximum decompressed bytes of a body that are scanned, which takes at most 1 ms. SDKs for Python write `user` after
 * the messages.
 */
export const SESSION_SCAN_BYTES_MAX = 256 * 1_024;

/** Finds the user or session of a call in its JSON body, as `field\nvalue`. Returns null if there is none. */
export async function sessionIn(
  bytes: Uint8Array,
  encoding: string | null,
): Promise<string | null> {
  const found = new SessionScan();
  const scan = scanEncoded(found, encoding);
  if (scan === null) return null;
  try {
    await scan.push(bytes.subarray(0, SESSION_SCAN_BYTES_MAX));
    if (scan.goesOn) await scan.end();
  } finally {
    scan.close();
  }
  return found.session;
}

/** Lenient, because a long value may be cut within a character. */
const lenient = new TextDecoder();

class SessionScan implements ModelScan {
  readonly isStream = false;
  readonly undecidedBytes = 0;
  readonly #visitor = new SessionVisitor();
  readonly #walk = new JsonWalk(this.#visitor, {
    form: 'object',
    keys: KEYS,
    keepBytesMax: VALUE_BYTES_MAX,
  });
  #bytes = 0;

  get session(): string | null {
    return this.#visitor.session;
  }

  get goesOn(): boolean {
    return this.#bytes < SESSION_SCAN_BYTES_MAX && !this.#visitor.isOver;
  }

  push(chunk: Uint8Array): ScanState {
    const rest = chunk.subarray(0, SESSION_SCAN_BYTES_MAX - this.#bytes);
    this.#bytes += rest.length;
    this.#walk.push(rest);
    return MORE;
  }

  end(): ScanState {
    return MORE;
  }
}

class SessionVisitor implements JsonVisitor {
  #rank = FIELDS.length;
  #field = '';
  session: string | null = null;
  /** Whether the object has ended, is malformed, or cannot contain a preferred field any more. */
  isOver = false;

  begin(value: WalkedValue, kind: ValueKind): Want {
    const { depth, firstByte } = value;
    const top = value.key(1);
    if (top === '' || depth > 2) return 'skip';
    if (kind === 'object') return depth === 1 && CONTAINERS.has(top) ? 'walk' : 'skip';
    const field = depth === 1 ? top : `${top}.${value.key(2)}`;
    const isText = kind === 'string' || (kind === 'scalar' && isDigit(firstByte));
    if (!isText || (RANKS.get(field) ?? Infinity) >= this.#rank) return 'skip';
    this.#field = field;
    return 'keep';
  }

  end(value: WalkedValue): void {
    const text = lenient.decode(value.kept).trim();
    if (text === '') return;
    this.#rank = RANKS.get(this.#field) ?? this.#rank;
    this.session = `${this.#field}\n${text}`;
    if (this.#rank > 0) return;
    this.isOver = true;
    value.leave();
  }

  record(): void {
    this.isOver = true;
  }

  stray(): void {
    this.isOver = true;
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}
