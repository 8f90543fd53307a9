import { fieldChanges, type ChangedObject } from '../model/change-list.ts';
import { plural } from '../format.ts';
import { Changes } from './changes.tsx';
import './changed-objects.css';

/** Up to this number of objects, all are expanded. */
const OPEN_MAX = 12;

/** Objects that a configuration change touches, removals first. */
export function ChangedObjects(props: {
  readonly objects: readonly ChangedObject[];
  /** Number of changes that are not listed. */
  readonly omitted: number;
}) {
  const objects = props.objects.toSorted((a, b) => RANK[a.kind] - RANK[b.kind]);
  return (
    <>
      {objects.map((object) => (
        <ObjectChanges
          key={`${object.list}[${object.name}]`}
          object={object}
          isOpen={objects.length <= OPEN_MAX}
        />
      ))}
      {props.omitted > 0 && (
        <p class="help">and {plural(props.omitted, 'more change')}, not listed</p>
      )}
    </>
  );
}

const RANK = { removed: 0, changed: 1, added: 2 };

const SIGNS = { removed: '−', changed: '~', added: '+' };

function ObjectChanges(props: { readonly object: ChangedObject; readonly isOpen: boolean }) {
  const { list, name, kind } = props.object;
  return (
    <details class={`changed-object ${kind}`} open={props.isOpen}>
      <summary>
        <span aria-hidden="true">{SIGNS[kind]} </span>
        {list !== '' && <small>{list} </small>}
        <strong>{name}</strong> <small>{kind}</small>
      </summary>
      <Changes changes={fieldChanges(props.object)} />
    </details>
  );
}

export function Warnings({ warnings }: { readonly warnings: readonly string[] }) {
  if (warnings.length === 0) return null;
  return (
    <ul class="warnings" aria-label="Warnings">
      {warnings.map((warning) => (
        <li key={warning}>{warning}</li>
      ))}
    </ul>
  );
}
