import type { ComponentChildren } from 'preact';
import './field.css';

/** Attributes by which label, help and errors belong to a control. */
export interface ControlAttributes {
  readonly id: string;
  readonly 'aria-describedby': string;
  readonly 'aria-invalid': boolean;
}

interface FieldProps {
  /** Unique on the page. */
  readonly id: string;
  readonly label: string;
  /** Name in the configuration, where that is not its label. */
  readonly code?: string;
  readonly unit?: string | undefined;
  readonly help?: ComponentChildren;
  /** Words for what is wrong with it. */
  readonly errors?: readonly string[];
  /** It is not as it was when the form was opened. */
  readonly isChanged?: boolean;
  /** It consists of several controls, each with a label of its own. */
  readonly isGroup?: boolean;
  readonly children: (attributes: ControlAttributes) => ComponentChildren;
}

/** A control with its label, help, unit and errors. */
export function Field(props: FieldProps) {
  const { id, label, code, unit, help, errors = [], isChanged = false, isGroup = false } = props;
  const attributes = {
    id,
    'aria-describedby': `${id}-help ${id}-errors`,
    'aria-invalid': errors.length > 0,
  };
  const Box = isGroup ? 'fieldset' : 'div';
  const described = isGroup ? { 'aria-describedby': attributes['aria-describedby'] } : {};
  return (
    <Box class={isChanged ? 'field changed' : 'field'} {...described}>
      {isGroup ? <legend>{label}</legend> : <label for={id}>{label}</label>}
      {code !== undefined && <code class="path">{code}</code>}
      <div class={unit === undefined ? 'control' : 'control with-unit'}>
        {props.children(attributes)}
        {unit !== undefined && <span class="unit">{unit}</span>}
      </div>
      <p class="help" id={`${id}-help`}>
        {isChanged && <span class="visually-hidden">Changed. </span>}
        {help}
      </p>
      <div class="errors" id={`${id}-errors`}>
        {errors.map((error) => (
          <p key={error}>{error}</p>
        ))}
      </div>
    </Box>
  );
}
