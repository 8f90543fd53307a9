import type * as z from 'zod';
import type { auditEntrySchema } from '../../../../src/contract/audit.ts';
import { actionParts } from '../../model/audit.ts';
import { byObject, fieldChanges, type ChangedObject } from '../../model/change-list.ts';
import { Changes } from '../../ui/changes.tsx';
import { When } from '../../ui/when.tsx';

export type Entry = z.output<typeof auditEntrySchema>;

/** A list of changes, each with who made it, when, and what was there before. */
export function AuditEntries({ entries }: { readonly entries: readonly Entry[] }) {
  return (
    <ol class="audit-entries">
      {entries.map((entry) => (
        <AuditEntry key={entry.sequence} entry={entry} />
      ))}
    </ol>
  );
}

function AuditEntry({ entry }: { readonly entry: Entry }) {
  const { at, actor, action, version, changes, changes_omitted } = entry;
  const { group, verb } = actionParts(action);
  const objects = byObject(changes);
  return (
    <li>
      <div class="audit-head">
        <span class="audit-when">
          <When at={at} />
        </span>
        <strong>{actor}</strong>
        <span class="audit-action">
          {group === null ? verb : <GroupLink name={group} after={`: ${verb}`} />}
        </span>
        <small>version {version}</small>
      </div>
      {objects.map((object) => (
        <AuditObject key={`${object.list}[${object.name}]`} object={object} about={action} />
      ))}
      {changes_omitted > 0 && <p class="help">and {changes_omitted} more that were not kept</p>}
    </li>
  );
}

/** Change of one object, named where the action above does not name it already. */
function AuditObject(props: { readonly object: ChangedObject; readonly about: string }) {
  const { object, about } = props;
  const { list, name, kind } = object;
  const isNamed = about.includes(` ${name}:`);
  return (
    <div class="audit-object">
      {(!isNamed || kind !== 'changed') && (
        <span class="audit-name">
          {!isNamed && <small>{list.replace(/s$/, '')} </small>}
          {!isNamed && (list === 'groups' ? <GroupLink name={name} after=" " /> : <b>{name} </b>)}
          {kind !== 'changed' && <small>{kind}</small>}
        </span>
      )}
      <Changes changes={fieldChanges(object)} />
    </div>
  );
}

function GroupLink({ name, after }: { readonly name: string; readonly after: string }) {
  return (
    <>
      <a href={`/admin/groups/${encodeURIComponent(name)}`}>{name}</a>
      {after}
    </>
  );
}
