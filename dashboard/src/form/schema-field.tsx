import type { ComponentType } from 'preact';
import { boundsText, pairRows, pairsFrom, textPairsFrom } from '../model/field-text.ts';
import { isSame, valueAt, type EditedDocument } from '../model/document.ts';
import { messagesAt, type FieldError } from '../model/field-errors.ts';
import { isSpecial, type SpecialPath } from '../model/field-words.ts';
import type { SchemaField as FieldOfSchema } from '../model/schema-fields.ts';
import { Field } from '../ui/field.tsx';
import { RowsControl } from './rows-control.tsx';
import {
  ChoiceControl,
  InstantControl,
  ListControl,
  NumberControl,
  OneOfControl,
  SwitchControl,
  TextControl,
  type ControlProps,
} from './simple-controls.tsx';
import {
  FairnessControl,
  LaneRulesControl,
  PriceControl,
  SaturatedControl,
  UnavailableControl,
} from './special-controls.tsx';

export interface FormState {
  readonly draft: EditedDocument;
  /** The document when the form was opened. */
  readonly base: EditedDocument;
  readonly errors: readonly FieldError[];
  readonly change: (path: string, value: unknown) => void;
  /** Choices by path for fields whose schema lists none. */
  readonly suggestions?: Readonly<Record<string, readonly string[]>>;
  /** Suggested values by path. Other values can be typed too. */
  readonly offers?: Readonly<Record<string, readonly string[]>>;
  /** Prefix of element ids, for pages with several such documents. */
  readonly idPrefix?: string;
}

/** Controls of fields whose values have a special shape, by path. */
const SPECIAL: Readonly<Record<SpecialPath, ComponentType<ControlProps>>> = {
  'queue.lane_rules': LaneRulesControl,
  'fairness.by': FairnessControl,
  on_saturated: SaturatedControl,
  on_unavailable: UnavailableControl,
  'limits.budget_usd.fallback_price': PriceControl,
};

/** One field of a document, with the control and the help text that its schema defines. */
export function SchemaField(props: {
  readonly field: FieldOfSchema;
  readonly label: string;
  readonly form: FormState;
}) {
  const { field, label, form } = props;
  const { path, kind } = field;
  const value = valueAt(form.draft, path);
  return (
    <Field
      id={`field-${form.idPrefix ?? ''}${path.replaceAll('.', '-')}`}
      label={label}
      code={path}
      unit={kind.type === 'number' ? field.unit : undefined}
      help={[field.help, boundsText(field)].filter((part) => part !== '').join(' ')}
      errors={messagesAt(form.errors, path)}
      isChanged={!isSame(value ?? field.fallback, valueAt(form.base, path) ?? field.fallback)}
      isGroup={kind.type === 'special' || kind.type === 'pairs'}
    >
      {(attributes) => {
        const onChange = (next: unknown): void => form.change(path, next);
        const given = { field, value, attributes, onChange };
        const words = { suggestions: form.suggestions?.[path] ?? [], offers: form.offers?.[path] };
        return <Control {...given} {...words} />;
      }}
    </Field>
  );
}

function Control(
  props: ControlProps & {
    readonly suggestions: readonly string[];
    readonly offers: readonly string[] | undefined;
  },
) {
  const { field, suggestions, value, onChange } = props;
  const { kind, path } = field;
  switch (kind.type) {
    case 'number':
      return <NumberControl {...props} />;
    case 'switch':
      return <SwitchControl {...props} />;
    case 'choice':
      return <ChoiceControl {...props} options={kind.options} />;
    case 'list':
      return <ListControl {...props} suggestions={[...kind.words, ...suggestions]} />;
    case 'instant':
      return <InstantControl {...props} />;
    case 'text':
      return suggestions.length > 0 ? (
        <OneOfControl {...props} options={suggestions} />
      ) : (
        <TextControl {...props} />
      );
    case 'pairs': {
      if (kind.isOfTexts) {
        const columns = [{ label: 'Model' }, { label: 'Name at the upstream' }];
        const rows = { value, columns, format: pairRows, parse: textPairsFrom, onChange };
        return <RowsControl {...rows} noun="model" isNamed />;
      }
      const numbers = path === 'fairness.weights' ? 'Weight' : 'Slots';
      const columns = [{ label: 'Tenant' }, { label: numbers, isShort: true }];
      const rows = { value, columns, format: pairRows, parse: pairsFrom, onChange };
      return <RowsControl {...rows} noun={numbers.toLowerCase()} isNamed />;
    }
    case 'special': {
      const Special = isSpecial(path) ? SPECIAL[path] : TextControl;
      return <Special {...props} />;
    }
  }
}
