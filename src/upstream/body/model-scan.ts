/**
 * Where a scan stands after the bytes it was given. All but `more` is final, and of a thorough scan `found` is
 * not: what follows may still be a second model.
 */
export type ScanState =
  | { readonly kind: 'more' }
  /** `start` and `end` bound the bytes of the value in the body, without its quotes. */
  | {
      readonly kind: 'found';
      readonly model: string;
      readonly start: number;
      readonly end: number;
    }
  /** The body has no model, or one that is not a text. */
  | { readonly kind: 'absent' }
  /** `why` continues the sentence "The model could not be read: …". */
  | {
      readonly kind: 'unreadable';
      readonly why: string;
      /** The field that names the model by reference, in a body that does not name it otherwise. */
      readonly reference?: string;
    }
  /** A thorough scan has seen a second one. Which of them counts, every parser decides for itself. */
  | { readonly kind: 'twice' }
  /** A field of the form holds a gateway key, or names another method: see `KeyFound`. */
  | { readonly kind: 'key'; readonly field: string | null; readonly isMethod?: true };

/**
 * How a body is scanned. `thorough`: to its end, taking nothing that another parser could take for another model.
 * Otherwise the first model counts, and what follows is not looked at.
 */
export type Depth = 'first' | 'thorough';

/** Looks for the model in a body that comes in chunks, whatever their borders. */
export interface ModelScan {
  /** Takes the next bytes. Changes nothing once the state is final. */
  push(chunk: Uint8Array): ScanState;
  /** The body has ended: the state is final from here on. */
  end(): ScanState;
  /** Whether the body asks for a stream, as far as the scan was asked to look for that. */
  readonly isStream: boolean;
  /** Whether what follows may change its state. */
  readonly goesOn: boolean;
  /** Bytes at the end of what was pushed that stand in something not decided yet. */
  readonly undecidedBytes: number;
}

/** Whether what follows may change the state of a scan. */
export function goesOn({ kind }: ScanState, depth: Depth): boolean {
  return kind === 'more' || (kind === 'found' && depth === 'thorough');
}

export const MORE: ScanState = { kind: 'more' };
export const ABSENT: ScanState = { kind: 'absent' };
const TWICE: ScanState = { kind: 'twice' };

/** Names under which some providers take models in place of the one that is named, in lower case and without separators. */
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

/** Names of objects with options for a gateway, which may hold another model: LiteLLM's and Vercel's. */
const GATEWAY_OPTIONS: ReadonlySet<string> = new Set(['extrabody', 'provideroptions']);

/** Whether a name, in lower case, stands for models in place of the one that is named. */
export function isModelList(folded: string): boolean {
  return LISTS.has(withoutSeparators(folded)) || folded.startsWith('model[');
}

/** Whether a name stands for an object with options for a gateway. */
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
 * Names under which providers accept something with its own model, or the model itself, in lower case and without
 * separators: an assistant, an agent, a preset, a stored prompt, an earlier response, a deployment. Servers
 * that speak protobuf's JSON take `agentId` for `agent_id`.
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

/** A string under this name is a prompt; an object names a stored prompt. */
export const PROMPT = 'prompt';

/** The field that a name stands for, if it may refer to a model; null: it does not. */
export function referenceIn(name: string): string | null {
  const folded = foldedName(name);
  if (folded === PROMPT) return PROMPT;
  return REFERENCES.has(withoutSeparators(folded)) ? name : null;
}

/** Whether a field of a form with this name says which model a call is for, to some parser. */
export function matters(name: string): boolean {
  const reference = referenceIn(name);
  return mayNameOther(name) || (reference !== null && reference !== PROMPT);
}

/** A name as case-insensitive parsers read it. Some of them read the long s as an s. */
export function foldedName(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/**
 * Counts the top-level names of a body that some parser may take for `model`: those of Go and .NET make no
 * difference between upper and lower case.
 */
export class BodyModelNames {
  #models = 0;
  #oddity: string | null = null;
  #reference: string | null = null;

  /** Takes a name. The answer is what speaks against the body from here on; null: nothing does. */
  take(name: string): ScanState | null {
    const folded = foldedName(name);
    if (isModelList(folded)) return unreadable(`there are several, under ${folded}`);
    if (folded !== 'model') return null;
    this.#models += 1;
    if (name !== folded) this.#oddity = 'its name is not written in lower case';
    return this.#models === 1 ? null : TWICE;
  }

  /** Notes that no text stands under `model`. Nobody knows what that means to an upstream. */
  takeNoText(): void {
    this.#oddity = 'its value is not a text';
  }

  /** Notes a field that refers to something with a model. It matters only where the body names no model. */
  takeReference(field: string): void {
    this.#reference ??= field;
  }

  /** The state at the end of a body in which no model was found. */
  end(): ScanState {
    if (this.#oddity !== null) return unreadable(this.#oddity);
    const reference = this.#reference;
    if (reference === null) return ABSENT;
    return { kind: 'unreadable', why: `the field ${reference} names it by reference`, reference };
  }
}

/**
 * Maximum bytes of a model's name. A longer one is taken for a mistake: it would be in every ticket.
 */
export const MODEL_BYTES_MAX = 1_024;

/** The state of a scan that cannot go on. */
export function unreadable(why: string): ScanState {
  return { kind: 'unreadable', why };
}

/** The state of a scan that has found the model. Some routers take a list of names for several models. */
export function foundAt(model: string, start: number, end: number, depth: Depth): ScanState {
  const isList = depth === 'thorough' && model.includes(',');
  return isList ? unreadable('its value names several') : { kind: 'found', model, start, end };
}

/** Bytes kept while a name or a value passes by, up to a bound: no allocation per byte. */
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

  /** Bytes that passed by, those beyond the bound included. */
  get length(): number {
    return this.#length;
  }

  /** Whether more passed by than could be kept. */
  get isCut(): boolean {
    return this.#length > this.#bytes.length;
  }

  /** The bytes that were kept. Changes with the next one. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The text of the bytes that were kept, or of the first `bytes` of them; null: not UTF-8. */
  text(bytes = this.#length): string | null {
    try {
      return utf8.decode(this.#bytes.subarray(0, bytes));
    } catch {
      return null;
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
