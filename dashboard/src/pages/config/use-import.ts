import { useRef, useState } from 'preact/hooks';
import type { ImportPlan } from '../../../../packages/import/src/plan-import.ts';
import { api, type Problem } from '../../api.ts';
import { plural } from '../../format.ts';
import { say } from '../../ui/toasts.tsx';

interface Wrong {
  readonly line: number | null;
  readonly path: string;
  readonly message: string;
}

export type ImportState =
  | { readonly kind: 'open' }
  | { readonly kind: 'wrong'; readonly message: string; readonly errors: readonly Wrong[] }
  | {
      readonly kind: 'checked';
      readonly plan: Extract<ImportPlan, { readonly ok: true }>;
      /** Whether the configuration changed during the review. */
      readonly isAgain: boolean;
    }
  | { readonly kind: 'applied'; readonly warnings: readonly string[] };

const NOTHING =
  'There is nothing to import. Paste a configuration, choose a file, or start from an example.';

/** Shown if the parser could not be loaded. It loads on demand, and a newer Headgate has other files. */
const NOT_READ: ImportState = {
  kind: 'wrong',
  message:
    'The text could not be read, because Headgate is unreachable or was updated after you opened this dashboard. Copy your text, then reload the page.',
  errors: [],
};

/** The importers of all formats are loaded when a text is imported. */
const loadImporters = () => import('../../../../packages/import/src/plan-import.ts');

/** Parses a text, previews its changes, and applies exactly those. */
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
    const { planImport } = await loadImporters();
    const plan = await planImport(api, document);
    if (!plan.ok) return refused(plan.problem, (path) => lineOf(text, path));
    return { kind: 'checked', plan, isAgain };
  };

  const apply = async (text: string): Promise<ImportState> => {
    if (state.kind !== 'checked') return state;
    const { applyImport } = await loadImporters();
    const result = await applyImport(api, state.plan);
    if (result.ok) {
      say('Configuration imported.');
      return { kind: 'applied', warnings: result.body.warnings };
    }
    return result.status === 412 ? check(text, true) : refused(result.problem, () => null);
  };

  const busy = async (act: () => Promise<ImportState>): Promise<void> => {
    const before = opened.current;
    setBusy(true);
    const next = await act().catch(() => NOT_READ);
    setBusy(false);
    // The result does not apply to text that was edited since.
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

function refused(problem: Problem, lineOf: (path: string) => number | null): ImportState {
  const errors = (problem.errors ?? []).map((error) => ({ ...error, line: lineOf(error.path) }));
  const { more = 0 } = problem;
  const count = errors.length + more;
  const listed = more === 0 ? '' : ` The first ${errors.length} are listed.`;
  const message =
    count === 0 ? problem.detail : `${plural(count, 'error')}. Nothing was changed.${listed}`;
  return { kind: 'wrong', message, errors };
}
