import { useMemo, useState } from 'preact/hooks';
import type * as z from 'zod';
import { changesBetween } from '../../../src/config/document-changes.ts';
import type { AuditChange } from '../../../src/contract/history.ts';
import { isSame, withValue, type EditedDocument } from '../model/document.ts';
import { check, isTouched, type CheckedDocument, type FieldError } from '../model/field-errors.ts';
import type { FormState } from './schema-field.tsx';

export interface FormDraft<Schema extends z.ZodType> {
  readonly form: FormState;
  readonly checked: CheckedDocument<Schema>;
  readonly changes: readonly AuditChange[];
  /** All errors, including those that are not shown yet. */
  readonly errors: readonly FieldError[];
  readonly replace: (draft: EditedDocument) => void;
  /** Sets the fallback price to 0 USD. Returns the document, or null if it has errors. */
  readonly countAsFree: () => z.output<Schema> | null;
  readonly restart: (base: EditedDocument, draft?: EditedDocument) => void;
  /** Returns the document. If it has errors, shows all of them and returns null. */
  readonly attempt: () => z.output<Schema> | null;
  /** Shows errors of the server until the next edit. */
  readonly refuse: (errors: readonly FieldError[]) => void;
}

interface Typed {
  readonly base: EditedDocument;
  readonly draft: EditedDocument;
  readonly touched: readonly string[];
  readonly refused: readonly FieldError[];
}

function opened(base: EditedDocument, draft: EditedDocument): Typed {
  return { base, draft, touched: [], refused: [] };
}

/** Path that covers every field. */
const ALL = '';

/**
 * Holds the input of a form. Each keystroke is checked by the schema that the server uses. An untouched field shows no
 * error before the user submits.
 */
export function useDraft<Schema extends z.ZodType>(
  schema: Schema,
  initial: EditedDocument,
  initialDraft = initial,
): FormDraft<Schema> {
  const [typed, setTyped] = useState(() => opened(initial, initialDraft));
  const { base, draft, touched, refused } = typed;
  const checked = useMemo(() => check(schema, draft), [schema, draft]);
  const changes = useMemo(() => {
    const now = checked.ok ? (checked.value as EditedDocument) : draft;
    return isSame(base, now) ? [] : changesBetween(base, now).changes;
  }, [base, draft, checked]);
  const errors = checked.ok ? refused : checked.errors;
  const shown = errors.filter(
    (error) => refused.includes(error) || touched.some((path) => isTouched(error, path)),
  );
  const replace = (next: EditedDocument): void =>
    setTyped((before) => ({ ...before, draft: next, touched: [ALL], refused: [] }));
  return {
    form: {
      draft,
      base,
      errors: shown,
      change: (path, value) =>
        setTyped((before) => ({
          ...before,
          draft: withValue(before.draft, path, value),
          touched: before.touched.includes(path) ? before.touched : [...before.touched, path],
          refused: [],
        })),
    },
    checked,
    changes,
    errors,
    replace,
    countAsFree: () => {
      const next = withValue(draft, 'limits.budget_usd.fallback_price', { input: 0, output: 0 });
      replace(next);
      const free = check(schema, next);
      return free.ok ? free.value : null;
    },
    restart: (next, nextDraft = next) => setTyped(opened(next, nextDraft)),
    attempt: () => {
      if (checked.ok) return checked.value;
      setTyped((before) => ({ ...before, touched: [ALL] }));
      return null;
    },
    refuse: (found) => setTyped((before) => ({ ...before, refused: found })),
  };
}
