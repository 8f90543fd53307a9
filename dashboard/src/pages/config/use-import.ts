import { useRef, useState } from 'preact/hooks';
import type * as z from 'zod';
import type { PREVIEW_ROUTES } from '../../../../src/contract/admin/preview-routes.ts';
import { api, type Problem } from '../../api.ts';
import { say } from '../../ui/toasts.tsx';

/** Changes that an import would make. */
type ConfigPreview = z.output<(typeof PREVIEW_ROUTES.previewConfig.answers)[200]>;

/** One thing that is wrong with a text, and where. */
interface Wrong {
  readonly line: number | null;
  readonly path: string;
  readonly message: string;
}

/** Where an import stands. */
export type ImportState =
  | { readonly kind: 'open' }
  | { readonly kind: 'wrong'; readonly message: string; readonly errors: readonly Wrong[] }
  | {
      readonly kind: 'checked';
      readonly preview: ConfigPreview;
      readonly document: unknown;
      readonly etag: string | null;
      /** Somebody changed something while this was looked at. */
      readonly isAgain: boolean;
    }
  | { readonly kind: 'applied'; readonly warnings: readonly string[] };

const NOTHING =
  'There is nothing to import: paste a configuration, choose a file, or take an example.';

/** State where the reader of texts could not be loaded: it is when it is needed, and a newer Headgate has other files. */
const NOT_READ: ImportState = {
  kind: 'wrong',
  message:
    'The text could not be read: Headgate cannot be reached, or has been updated since this dashboard was opened. Copy what you typed, and load the page again.',
  errors: [],
};

/** Reads a text, asks what it would change, and applies exactly that. */
export function useImport() {
  const [state, setState] = useState<ImportState>({ kind: 'open' });
  const [isBusy, setBusy] = useState(false);
  const opened = useRef(0);

  const check = async (text: string, isAgain: boolean): Promise<ImportState> => {
    if (text.trim() === '') return { kind: 'wrong', message: NOTHING, errors: [] };
    const { parseConfigText, lineOf, ConfigSyntaxError } =
      await import('../../model/config-text.ts');
    let document: unknown;
    try {
      document = parseConfigText(text, null);
    } catch (error) {
      if (!(error instanceof ConfigSyntaxError)) throw error;
      return { kind: 'wrong', message: error.message, errors: [] };
    }
    const result = await api('previewConfig', { body: bodyOf(document) });
    if (!result.ok) return refused(result.problem, (path) => lineOf(text, path));
    const preview = result.body as ConfigPreview;
    return { kind: 'checked', preview, document, etag: result.etag, isAgain };
  };

  const apply = async (text: string): Promise<ImportState> => {
    if (state.kind !== 'checked') return state;
    const { document, etag } = state;
    const ifMatch = etag === null ? {} : { ifMatch: etag };
    const result = await api('putConfig', { body: bodyOf(document), ...ifMatch });
    if (result.ok) {
      say('The configuration is imported.');
      return { kind: 'applied', warnings: result.body.warnings };
    }
    return result.status === 412 ? check(text, true) : refused(result.problem, () => null);
  };

  const busy = async (act: () => Promise<ImportState>): Promise<void> => {
    const before = opened.current;
    setBusy(true);
    const next = await act().catch(() => NOT_READ);
    setBusy(false);
    // It is not about what was typed since.
    if (opened.current === before) setState(next);
  };
  return {
    state,
    isBusy,
    check: (text: string) => busy(() => check(text, false)),
    apply: (text: string) => busy(() => apply(text)),
    reopen: () => {
      opened.current += 1;
      setState({ kind: 'open' });
    },
  };
}

/** The server says what a document is worth, so anything may be sent to it. */
function bodyOf(document: unknown): Parameters<typeof api<'putConfig'>>[1]['body'] {
  return document as Parameters<typeof api<'putConfig'>>[1]['body'];
}

function refused(problem: Problem, lineOf: (path: string) => number | null): ImportState {
  const errors = (problem.errors ?? []).map((error) => ({ ...error, line: lineOf(error.path) }));
  const { more = 0 } = problem;
  const count = errors.length + more;
  const listed = more === 0 ? '' : ` These are the first ${errors.length}.`;
  const message =
    count === 0
      ? problem.detail
      : `${count === 1 ? 'One thing is' : `${count} things are`} wrong. Nothing was changed.${listed}`;
  return { kind: 'wrong', message, errors };
}
