import type * as z from 'zod';
import type { auditEntrySchema } from '../../../../src/contract/history.ts';
import { exact, plural } from '../../format.ts';
import { actionParts, withInstants } from '../../model/audit.ts';
import { byObject, fieldChanges, type ChangedObject } from '../../model/change-list.ts';
import { actorWords } from '../../model/audit.ts';
import type { RollbackTarget, RollbackTargets } from '../../model/rollback-target.ts';
import { Changes } from '../../ui/changes.tsx';
import { When } from '../../ui/when.tsx';

export type AuditLogEntry = z.output<typeof auditEntrySchema>;

export function AuditEntries(props: {
  readonly entries: readonly AuditLogEntry[];
  readonly targetsOf: (entry: AuditLogEntry) => RollbackTargets;
  readonly onRollBack: (target: RollbackTarget) => void;
}) {
  return (
    <ol class="audit-entries">
      {props.entries.map((entry) => (
        <AuditEntry
          key={entry.sequence}
          entry={entry}
          targets={props.targetsOf(entry)}
          onRollBack={props.onRollBack}
        />
      ))}
    </ol>
  );
}

function AuditEntry(props: {
  readonly entry: AuditLogEntry;
  readonly targets: RollbackTargets;
  readonly onRollBack: (target: RollbackTarget) => void;
}) {
  const { entry } = props;
  const { at, actor, action, version, changes, changes_omitted } = entry;
  const { group, verb } = actionParts(action);
  const text = withInstants(verb, exact);
  const objects = byObject(changes);
  return (
    <li>
      <div class="audit-head">
        <span class="audit-when">
          <When at={at} />
        </span>
        <strong title={actorWords(actor)}>
          <bdi>{actor}</bdi>
        </strong>
        <span class="audit-action">
          {group === null ? text : <GroupLink name={group} after={`: ${text}`} />}
        </span>
        <small>version {version}</small>
      </div>
      {objects.map((object) => (
        <AuditObject key={`${object.list}[${object.name}]`} object={object} about={action} />
      ))}
      {changes_omitted > 0 && (
        <p class="help">and {plural(changes_omitted, 'more change')}, not stored</p>
      )}
      <Back {...props} />
    </li>
  );
}

/** Rollbacks of an entry, and the configuration at that version. */
function Back(props: {
  readonly entry: AuditLogEntry;
  readonly targets: RollbackTargets;
  readonly onRollBack: (target: RollbackTarget) => void;
}) {
  const { entry, onRollBack } = props;
  const { undo, restore } = props.targets;
  if (undo === null && restore === null) return null;
  const label = (verb: string) => `${verb}: version ${entry.version}, ${entry.action}`;
  return (
    <div class="audit-back">
      {undo !== null && (
        <button
          type="button"
          class="quiet"
          aria-label={label('Undo this change')}
          onClick={() => onRollBack(undo)}
        >
          Undo this change
        </button>
      )}
      {restore !== null && (
        <button
          type="button"
          class="quiet"
          aria-label={label('Restore this version')}
          onClick={() => onRollBack(restore)}
        >
          Restore this version
        </button>
      )}
      <a
        class="button quiet"
        href={`/admin/api/config?version=${entry.version}&format=yaml`}
        target="_blank"
        rel="noopener"
        aria-label={label('View configuration')}
      >
        View configuration
      </a>
    </div>
  );
}

/** Change of one object. Its name is shown unless the action above already contains it. */
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
