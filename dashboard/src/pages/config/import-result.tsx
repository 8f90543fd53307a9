import { byObject, fieldChanges, tally, type ChangedObject } from '../../model/change-list.ts';
import { Changes } from '../../ui/changes.tsx';
import type { ImportState } from './use-import.ts';

/** Maximum of objects that are shown open. */
const OPEN_MAX = 12;

/** Result of a check: what is wrong, or what would change, by object. */
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
          <p>The configuration is imported.</p>
          <Warnings warnings={state.warnings} />
        </div>
      );
    case 'checked': {
      const { changes, changes_omitted: omitted, warnings } = state.preview;
      const objects = byObject(changes).toSorted((a, b) => RANK[a.kind] - RANK[b.kind]);
      return (
        <div class="diff">
          {state.isAgain && (
            <p role="alert">
              Somebody changed the configuration meanwhile. This is what would change now.
            </p>
          )}
          <div role="status">
            <h3>
              {objects.length === 0 ? 'Nothing would change' : `Would change: ${tally(objects)}`}
            </h3>
          </div>
          <Warnings warnings={warnings} />
          {objects.map((object) => (
            <ObjectChanges
              key={`${object.list}[${object.name}]`}
              object={object}
              isOpen={objects.length <= OPEN_MAX}
            />
          ))}
          {omitted > 0 && <p class="help">and {omitted} more changes, which are not listed</p>}
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

/** Order of changes: what is lost comes first. */
const RANK = { removed: 0, changed: 1, added: 2 };

const SIGNS = { removed: '−', changed: '~', added: '+' };

function ObjectChanges(props: { readonly object: ChangedObject; readonly isOpen: boolean }) {
  const { list, name, kind } = props.object;
  return (
    <details class={`object ${kind}`} open={props.isOpen}>
      <summary>
        <span aria-hidden="true">{SIGNS[kind]} </span>
        {list !== '' && <small>{list} </small>}
        <strong>{name}</strong> <small>{kind}</small>
      </summary>
      <Changes changes={fieldChanges(props.object)} />
    </details>
  );
}

function Warnings({ warnings }: { readonly warnings: readonly string[] }) {
  if (warnings.length === 0) return null;
  return (
    <ul class="warnings" aria-label="Warnings">
      {warnings.map((warning) => (
        <li key={warning}>{warning}</li>
      ))}
    </ul>
  );
}
