import type { Fetcher } from '../../upstream/transfer/fetch-answer.ts';
import { textWithin } from '../../upstream/body/bytes.ts';
import { PAGE_MODELS, readModelPage, type Model, type ModelPage } from './model-page.ts';

/**
 * Why a list of models is missing or incomplete: one of Headgate's words, `status_` and a status, or the reason of an
 * error.
 */
export type ModelListFault = string;

/** The models that an upstream lists, as far as they were read. */
export interface Listing {
  readonly models: readonly Model[];
  /** Length of its text, in characters. */
  readonly chars: number;
  /** null if the list is complete. */
  readonly fault: ModelListFault | null;
}

/** Timeout of an upstream for all pages of its list, in milliseconds. Callers do not wait that long. */
export const ASK_TIMEOUT_MS = 15_000;

/** Maximum length of a list with all its pages. */
const LIST_BYTES_MAX = 4 * 1_024 * 1_024;

const PAGES_MAX = 50;

interface ModelListRequest {
  readonly fetcher: Fetcher;
  readonly url: string;
  readonly headers: Headers;
  readonly dialect: string;
}

/**
 * Requests the models of an upstream, page by page. `report` receives what was read after each page except the last.
 */
export async function askModels(
  request: ModelListRequest,
  report: (soFar: readonly Model[]) => void,
): Promise<Listing> {
  const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
  const models = new Map<string, Model>();
  let chars = 0;
  let isPartial = false;
  const listed = (fault: ModelListFault | null): Listing => {
    return {
      models: [...models.values()],
      chars,
      fault: fault ?? (isPartial ? 'unreadable' : null),
    };
  };
  // Anthropic lists 20 models per page by default.
  let query: ModelPage['next'] = request.dialect === 'anthropic' ? { limit: PAGE_MODELS } : {};
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await readOne(request, query, LIST_BYTES_MAX - chars, signal);
    if (typeof read === 'string') return listed(read);
    chars += read.chars;
    isPartial ||= read.page.isPartial;
    const before = models.size;
    for (const model of read.page.models) models.set(model.id, model);
    query = read.page.next;
    if (query === null) return listed(null);
    // The upstream ignores the cursor, so another page would be the same.
    if (models.size === before) return listed('unreadable');
    report([...models.values()]);
  }
  return listed('too_long');
}

async function readOne(
  { fetcher, url, headers, dialect }: ModelListRequest,
  query: Readonly<Record<string, string>>,
  bytesMax: number,
  signal: AbortSignal,
): Promise<{ readonly page: ModelPage; readonly chars: number } | ModelListFault> {
  const search = new URLSearchParams(query).toString();
  try {
    // Following a redirect would send the key to another host, so it counts as no list.
    const init = { headers, redirect: 'manual', signal } as const;
    const answer = await fetcher.fetch(search === '' ? url : `${url}?${search}`, init);
    if (!answer.ok) {
      answer.body?.cancel().catch(() => {});
      return `status_${answer.status}`;
    }
    const text = await textWithin(answer, bytesMax);
    if (text === null) return 'too_long';
    const page = readModelPage(parse(text), dialect);
    return page === null ? 'unreadable' : { page, chars: text.length };
  } catch {
    return signal.aborted ? 'timeout' : 'unreachable';
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
