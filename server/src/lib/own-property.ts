// Lookups in plain objects by a name that comes from outside. `object[name]` also finds what every object inherits:
// `constructor`, `toString`, `__proto__`.

/**
 * The object's own value of this name, or undefined. A table that is only ever looked up by such names should be a Map.
 */
export const ownProperty = <Value>(object: Readonly<Record<string, Value>>, name: string): Value | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined
