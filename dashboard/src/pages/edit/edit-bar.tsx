import type { AuditChange } from '../../../../src/contract/history.ts';
import { plural } from '../../format.ts';
import { Changes } from '../../ui/changes.tsx';
import type { FieldError } from '../../model/field-errors.ts';
import { may } from '../../session.ts';

interface EditBarProps {
  readonly isNew: boolean;
  readonly isRaw: boolean;
  readonly onRaw: (isRaw: boolean) => void;
  readonly search: string;
  readonly onSearch: (search: string) => void;
  readonly changes: readonly AuditChange[];
  /** Errors outside the fields of the form. */
  readonly errors: readonly FieldError[];
  readonly problem: string | null;
  /** Whether the text can be parsed. */
  readonly isReadable: boolean;
  /** Number of shown errors. */
  readonly wrong: number;
  readonly isBusy: boolean;
  readonly onDiscard: () => void;
  readonly onReview: () => void;
}

/** Bar beside the form, always visible: the changes so far, and the next step. */
export function EditBar(props: EditBarProps) {
  const { isNew, isRaw, isReadable, changes, errors, problem } = props;
  const wrong = isReadable ? props.wrong : 1;
  return (
    <aside class="edit-bar" aria-label="Changes">
      <div class="views" role="group" aria-label="View">
        <button
          type="button"
          aria-pressed={!isRaw}
          onClick={() => props.onRaw(false)}
          disabled={!props.isReadable}
        >
          Form
        </button>
        <button type="button" aria-pressed={isRaw} onClick={() => props.onRaw(true)}>
          YAML
        </button>
      </div>
      {!isRaw && (
        <input
          type="search"
          aria-label="Find a field"
          placeholder="Find a field"
          value={props.search}
          onInput={(event) => props.onSearch(event.currentTarget.value)}
        />
      )}
      <div class="so-far">
        <h2>{changes.length === 0 ? 'No changes yet' : 'Changes so far'}</h2>
        {changes.length > 0 && <Changes changes={changes} />}
      </div>
      <div role="alert">
        {wrong > 0 && <p>{plural(wrong, 'error')} to fix.</p>}
        {errors.map(({ path, message }) => (
          <p key={path + message}>
            <code>{path}</code> {message}
          </p>
        ))}
        {problem !== null && errors.length === 0 && wrong === 0 && <p>{problem}</p>}
      </div>
      {may('admin') ? (
        <div class="actions">
          <button
            type="button"
            class="primary"
            disabled={props.isBusy || wrong > 0 || (changes.length === 0 && !isNew)}
            onClick={props.onReview}
          >
            Review change
          </button>
          <button type="button" disabled={changes.length === 0} onClick={props.onDiscard}>
            Discard
          </button>
        </div>
      ) : (
        <p class="help">Read-only. Editing groups requires the admin role.</p>
      )}
    </aside>
  );
}
