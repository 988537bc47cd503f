/** A map that forgets what was not asked for longest when it gets too large: its keys come from outside. */
export function createLruMap<Key, Value>(most: number, onForget: (value: Value) => void = () => {}) {
  const map = new Map<Key, Value>()
  return {
    get(key: Key): Value | undefined {
      const value = map.get(key)
      // While there is room it does not matter who was asked for last.
      if (value !== undefined && map.size > most / 2) {
        map.delete(key)
        map.set(key, value)
      }
      return value
    },
    set(key: Key, value: Value) {
      map.delete(key)
      map.set(key, value)
      for (const [oldest, forgotten] of map) {
        if (map.size <= most) return
        map.delete(oldest)
        onForget(forgotten)
      }
    },
    values: () => [...map.values()],
  }
}
