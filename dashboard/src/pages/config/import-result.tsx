import { byObject, tally } from '../../model/change-list.ts';
import { ChangedObjects, Warnings } from '../../ui/changed-objects.tsx';
import type { ImportState } from './use-import.ts';

export function ImportResult(props: {
  readonly state: ImportState;
  readonly isBusy: boolean;
  readonly onApply: () => void;
  readonly onCancel: () => void;
}) {
  const { state, isBusy } = props;
  switch (state.kind) {
    case 'open':
      return null;
    case 'wrong':
      return (
        <div role="alert">
          <p>{state.message}</p>
          <ul class="wrong">
            {state.errors.map(({ line, path, message }) => (
              <li key={path + message}>
                {line !== null && <span class="line">line {line}</span>}
                <code>{path}</code> {message}
              </li>
            ))}
          </ul>
        </div>
      );
    case 'applied':
      return (
        <div role="status">
          <p>Configuration imported.</p>
          <Warnings warnings={state.warnings} />
        </div>
      );
    case 'checked': {
      const { changes, changes_omitted: omitted, warnings } = state.plan.preview;
      const objects = byObject(changes);
      return (
        <div class="diff">
          {state.isAgain && (
            <p role="alert">
              The configuration changed in the meantime. These are the changes now.
            </p>
          )}
          <div role="status">
            <h3>{objects.length === 0 ? 'No changes' : `Changes: ${tally(objects)}`}</h3>
          </div>
          <Warnings warnings={warnings} />
          <ChangedObjects objects={objects} omitted={omitted} />
          <div class="actions">
            <button
              type="button"
              class="primary"
              disabled={isBusy || objects.length === 0}
              onClick={props.onApply}
            >
              Apply import
            </button>
            <button type="button" onClick={props.onCancel}>
              Back
            </button>
          </div>
        </div>
      );
    }
  }
}
