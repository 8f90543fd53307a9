import { useMemo, useState } from 'preact/hooks';
import type * as z from 'zod';
import { changesBetween } from '../../../src/config/changes-between.ts';
import type { AuditChange } from '../../../src/contract/audit.ts';
import { isSame, withValue, type EditedDocument } from '../model/document.ts';
import { check, isTouched, type CheckedDocument, type FieldError } from '../model/field-errors.ts';
import type { FormState } from './schema-field.tsx';

/** A form over a document, with everything that was typed so far. */
export interface FormDraft<Schema extends z.ZodType> {
  readonly form: FormState;
  readonly checked: CheckedDocument<Schema>;
  /** From what the form was opened with to what it says now. */
  readonly changes: readonly AuditChange[];
  /** Everything that is wrong, shown or not yet. */
  readonly errors: readonly FieldError[];
  /** Takes another document in place of what was typed. */
  readonly replace: (draft: EditedDocument) => void;
  /** Has the budget count calls without a known price as 0 USD. Returns the document, or null if something is wrong with it. */
  readonly countAsFree: () => z.output<Schema> | null;
  /** Begins anew from another document. */
  readonly restart: (base: EditedDocument, draft?: EditedDocument) => void;
  /** The document, or null after showing everything that is wrong with it. */
  readonly attempt: () => z.output<Schema> | null;
  /** Shows what the server found wrong, until something changes. */
  readonly refuse: (errors: readonly FieldError[]) => void;
}

interface Typed {
  readonly base: EditedDocument;
  readonly draft: EditedDocument;
  readonly touched: readonly string[];
  readonly refused: readonly FieldError[];
}

/** Nothing has been touched yet. */
function opened(base: EditedDocument, draft: EditedDocument): Typed {
  return { base, draft, touched: [], refused: [] };
}

/** Every field. */
const ALL = '';

/**
 * Keeps what is typed into a form. It is checked at every stroke by the schema that the server checks by; a
 * field that nobody has touched does not complain before somebody tries to go on.
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
