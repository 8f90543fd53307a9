import { useEffect, useRef, useState } from 'preact/hooks';
import { groupSchema } from '../../../../src/contract/config/group.ts';
import { SchemaField } from '../../form/schema-field.tsx';
import { useDraft } from '../../form/use-draft.ts';
import type { EditedDocument } from '../../model/document.ts';
import { elsewhere } from '../../model/field-errors.ts';
import { GROUP_SECTIONS, NAME_LABEL, sectionsOf } from '../../model/group-fields.ts';
import { fieldsOf } from '../../model/schema-fields.ts';
import { may } from '../../session.ts';
import { useLeaveGuard } from '../../ui/leave-guard.ts';
import { ChangedElsewhere } from './changed-elsewhere.tsx';
import { Conflict } from './conflict.tsx';
import { EditBar } from './edit-bar.tsx';
import { RawView } from './raw-view.tsx';
import { ReviewDialog } from './review.tsx';
import { Section } from './section.tsx';
import { useReview } from './use-review.ts';
import { useSuggestions } from './use-suggestions.ts';

const FIELDS = new Map(fieldsOf(groupSchema).map((field) => [field.path, field]));
const SHOWN = GROUP_SECTIONS.flatMap(({ fields }) => Object.keys(fields));

export function GroupEditor(props: {
  readonly base: EditedDocument;
  readonly draft: EditedDocument;
  readonly isNew: boolean;
}) {
  const { isNew } = props;
  const draft = useDraft(groupSchema, props.base, props.draft);
  const { changes, errors } = draft;
  const form = { ...draft.form, suggestions: useSuggestions() };
  const review = useReview(isNew, draft.refuse);
  const [isRaw, setRaw] = useState(false);
  const [isReadable, setReadable] = useState(true);
  const [search, setSearch] = useState('');
  const [revision, setRevision] = useState(0);
  const [failures, setFailures] = useState(0);
  const page = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (failures > 0) page.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [failures]);
  useLeaveGuard(changes.length > 0);

  const look = async (): Promise<void> => {
    const group = draft.attempt();
    if (group !== null) await review.look(group, form.base);
    else setFailures((before) => before + 1);
  };
  const countAsFree = async (): Promise<void> => {
    const group = draft.countAsFree();
    if (group !== null) await review.look(group, form.base);
  };
  const restart = (base: EditedDocument, next?: EditedDocument): void => {
    draft.restart(base, next);
    setRevision((before) => before + 1);
    review.close();
  };
  const { theirs } = review;
  return (
    <div ref={page} class="editor">
      {!isNew && <ChangedElsewhere key={revision} name={String(form.base['name'])} />}
      {theirs !== undefined && (
        <Conflict
          base={form.base}
          mine={draft.checked.ok ? (draft.checked.value as EditedDocument) : form.draft}
          theirs={theirs}
          onTakeOver={(merged) => restart(theirs ?? {}, merged)}
          onStartAnew={() => restart(theirs ?? {})}
        />
      )}
      <fieldset class="plain" disabled={!may('admin')}>
        {isRaw ? (
          <RawView
            key={revision}
            form={form}
            errors={errors}
            onChange={draft.replace}
            onReadable={setReadable}
          />
        ) : (
          <>
            {isNew && <NameField form={form} />}
            {sectionsOf(form.base['name']).map((section) => (
              <Section
                key={section.id}
                section={section}
                fields={FIELDS}
                form={form}
                search={search.trim().toLowerCase()}
              />
            ))}
          </>
        )}
      </fieldset>
      <EditBar
        isNew={isNew}
        isRaw={isRaw}
        onRaw={setRaw}
        search={search}
        onSearch={setSearch}
        changes={changes}
        errors={isRaw ? [] : elsewhere(form.errors, isNew ? ['name', ...SHOWN] : SHOWN)}
        problem={review.problem}
        isReadable={isReadable}
        wrong={form.errors.length}
        isBusy={review.isBusy}
        onDiscard={() => restart(form.base)}
        onReview={() => void look()}
      />
      {review.reviewed !== null && draft.checked.ok && (
        <Confirmation
          group={draft.checked.value}
          base={form.base}
          isNew={isNew}
          review={review}
          onFree={() => void countAsFree()}
        />
      )}
    </div>
  );
}

function NameField({ form }: { readonly form: Parameters<typeof SchemaField>[0]['form'] }) {
  const field = FIELDS.get('name');
  if (field === undefined) return null;
  return <SchemaField field={field} label={NAME_LABEL} form={form} />;
}

function Confirmation(props: {
  readonly group: Parameters<ReturnType<typeof useReview>['apply']>[0];
  readonly base: EditedDocument;
  readonly isNew: boolean;
  readonly review: ReturnType<typeof useReview>;
  readonly onFree: () => void;
}) {
  const { review, group, base, isNew } = props;
  if (review.reviewed === null) return null;
  return (
    <ReviewDialog
      reviewed={review.reviewed}
      isNew={isNew}
      isBusy={review.isBusy}
      onApply={(lasts) => void review.apply(group, base, lasts)}
      onFree={props.onFree}
      onClose={review.close}
    />
  );
}
