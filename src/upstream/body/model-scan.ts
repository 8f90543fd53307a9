/**
 * The state of a scan. Every state except `more` is final. In a thorough scan, `found` is not final either, because a
 * second model may follow.
 */
export type ScanState =
  | { readonly kind: 'more' }
  /** `start` and `end` are the positions in the body of the value without its quotes. */
  | {
      readonly kind: 'found';
      readonly model: string;
      readonly start: number;
      readonly end: number;
    }
  /** The body has no model, or one that is not a string. */
  | { readonly kind: 'absent' }
  /** `why` continues the sentence "The model could not be read: …". */
  | {
      readonly kind: 'unreadable';
      readonly why: string;
      /** The field that names the model by reference, if the body does not name it directly. */
      readonly reference?: string;
    }
  /** A thorough scan has found a second model. Parsers differ in which one they use. */
  | { readonly kind: 'twice' }
  /** A field of the form contains a gateway key or overrides the method (see `KeyFound`). */
  | { readonly kind: 'key'; readonly field: string | null; readonly isMethod?: true };

/**
 * How a body is scanned. `thorough` scans to the end and rejects everything that another parser could read as another
 * model. With `first` the first model counts, and the rest is not scanned.
 */
export type Depth = 'first' | 'thorough';

/** Searches for the model in a body that may be split into chunks anywhere. */
export interface ModelScan {
  /** Scans the next bytes. Has no effect once the state is final. */
  push(chunk: Uint8Array): ScanState;
  /** Called at the end of the body. The state is final afterwards. */
  end(): ScanState;
  /** Whether the body requests a stream, if the scan was asked to search for that. */
  readonly isStream: boolean;
  /** Whether further bytes may change the state. */
  readonly goesOn: boolean;
  /** Number of trailing bytes that belong to something undecided. */
  readonly undecidedBytes: number;
}

export function goesOn({ kind }: ScanState, depth: Depth): boolean {
  return kind === 'more' || (kind === 'found' && depth === 'thorough');
}

export const MORE: ScanState = { kind: 'more' };
export const ABSENT: ScanState = { kind: 'absent' };
const TWICE: ScanState = { kind: 'twice' };

/** Names under which some providers accept models that replace the named one, in lower case and without separators. */
const LISTS: ReadonlySet<string> = new Set([
  'contentpolicyfallbacks',
  'contextwindowfallbackdict',
  'contextwindowfallbacks',
  'fallbackmodels',
  'fallbacks',
  'modellist',
  'models',
  'userconfig',
]);

/** Names of objects with options for a gateway, which may contain another model (LiteLLM and Vercel). */
const GATEWAY_OPTIONS: ReadonlySet<string> = new Set(['extrabody', 'provideroptions']);

/** Whether a name, in lower case, lists models that replace the named one. */
export function isModelList(folded: string): boolean {
  return LISTS.has(withoutSeparators(folded)) || folded.startsWith('model[');
}

export function isGatewayOptions(name: string): boolean {
  return GATEWAY_OPTIONS.has(withoutSeparators(foldedName(name)));
}

/** Whether a name within the options for a gateway may name another model. */
export function mayNameOther(name: string): boolean {
  const folded = foldedName(name);
  return folded === 'model' || isModelList(folded);
}

function withoutSeparators(folded: string): string {
  return folded.replace(/[\s_.-]/g, '');
}

/**
 * Names under which providers accept a model, or something that has its own model, in lower case and without
 * separators: an assistant, an agent, a preset, a stored prompt, an earlier response, a deployment. Servers that use
 * protobuf's JSON mapping accept `agentId` for `agent_id`.
 */
const REFERENCES: ReadonlySet<string> = new Set([
  'agent',
  'agentid',
  'agentname',
  'appid',
  'assistant',
  'assistantid',
  'botid',
  'deployment',
  'deploymentid',
  'deploymentname',
  'endpointid',
  'engine',
  'engineid',
  'inferenceprofile',
  'inferenceprofilearn',
  'modelalias',
  'modelarn',
  'modelid',
  'modelkey',
  'modelname',
  'modelref',
  'modelslug',
  'modeluri',
  'preset',
  'previousinteractionid',
  'previousresponseid',
  'promptid',
  'prompttemplateid',
  'promptarn',
  'retrieveandgenerateconfiguration',
  'workflowid',
]);

/** A string under this name is a prompt, and an object refers to a stored prompt. */
export const PROMPT = 'prompt';

/** The field name, if it may refer to a model. null otherwise. */
export function referenceIn(name: string): string | null {
  const folded = foldedName(name);
  if (folded === PROMPT) return PROMPT;
  return REFERENCES.has(withoutSeparators(folded)) ? name : null;
}

/** Whether some parser may take the model of a call from a form field with this name. */
export function matters(name: string): boolean {
  const reference = referenceIn(name);
  return mayNameOther(name) || (reference !== null && reference !== PROMPT);
}

/** A name as case-insensitive parsers read it. Some of them read the long s as an s. */
export function foldedName(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** Counts the top-level names of a body that some parser may read as `model`. Those of Go and .NET ignore case. */
export class BodyModelNames {
  #models = 0;
  #oddity: string | null = null;
  #reference: string | null = null;

  /** Counts a name. Returns a state if the name makes the body unusable, and null otherwise. */
  take(name: string): ScanState | null {
    const folded = foldedName(name);
    if (isModelList(folded)) return unreadable(`\`${folded}\` lists several models`);
    if (folded !== 'model') return null;
    this.#models += 1;
    if (name !== folded) this.#oddity = 'its name is not written in lower case';
    return this.#models === 1 ? null : TWICE;
  }

  /** Notes that `model` is not a string. How upstreams handle that is unknown. */
  takeNoText(): void {
    this.#oddity = 'its value is not a string';
  }

  /** Notes a field that refers to something with a model. It only matters if the body names no model. */
  takeReference(field: string): void {
    this.#reference ??= field;
  }

  /** The state at the end of a body in which no model was found. */
  end(): ScanState {
    if (this.#oddity !== null) return unreadable(this.#oddity);
    const reference = this.#reference;
    if (reference === null) return ABSENT;
    return {
      kind: 'unreadable',
      why: `the field \`${reference}\` names it by reference`,
      reference,
    };
  }
}

/** Maximum bytes of a model name. A longer one counts as a mistake, because the name is stored in every ticket. */
export const MODEL_BYTES_MAX = 1_024;

export function unreadable(why: string): ScanState {
  return { kind: 'unreadable', why };
}

/** The state of a scan that has found the model. Some routers accept a list of names for several models. */
export function foundAt(model: string, start: number, end: number, depth: Depth): ScanState {
  const isList = depth === 'thorough' && model.includes(',');
  return isList
    ? unreadable('its value lists several models')
    : { kind: 'found', model, start, end };
}

/** Keeps the bytes of a name or a value up to a maximum, without an allocation per byte. */
export class Capture {
  readonly #bytes: Uint8Array;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytes = new Uint8Array(bytesMax);
  }

  clear(): void {
    this.#length = 0;
  }

  add(byte: number): void {
    if (this.#length < this.#bytes.length) this.#bytes[this.#length] = byte;
    this.#length += 1;
  }

  /** Number of bytes added, including those beyond the maximum. */
  get length(): number {
    return this.#length;
  }

  /** Whether more bytes were added than could be kept. */
  get isCut(): boolean {
    return this.#length > this.#bytes.length;
  }

  /** The bytes that were kept. The next added byte changes them. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The text of the kept bytes, or of the first `bytes` of them. null if they are not UTF-8. */
  text(bytes = this.#length): string | null {
    try {
      return utf8.decode(this.#bytes.subarray(0, bytes));
    } catch {
      return null;
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
