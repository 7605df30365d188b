# Ruby pg (Debian: ruby-pg), by default, or with "typed" as its type map sends values

require 'pg'

connection = PG.connect
typed = ARGV[0] == 'typed'
connection.type_map_for_queries = PG::BasicTypeMapForQueries.new(connection) if typed
binary = lambda do |bytes|
  typed ? PG::BasicTypeMapForQueries::BinaryData.new(bytes) : { value: bytes, format: 1 }
end
encoder = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::String.new)
statements = {}
last = nil

$stdin.set_encoding('UTF-8')
$stdin.each_line(chomp: true) do |line|
  mode, sql, *parameters = line.split("\t")
  values = parameters.map do |parameter|
    kind, text = parameter.split(' ', 2)
    case kind
    when 'int' then text.to_i
    when 'ints' then typed ? text.split(',').map(&:to_i) : encoder.encode(text.split(','))
    when 'strs', 'uuids' then typed ? text.split(',') : encoder.encode(text.split(','))
    when 'bytes' then binary.([text].pack('H*'))
    when 'null' then nil
    when 'last' then mode == 'binary' ? binary.(last) : last
    else text || ''
    end
  end
  begin
    result =
      if mode == 'prepared'
        connection.prepare(statements[sql] = "statement #{statements.size}", sql) unless statements[sql]
        connection.exec_prepared(statements[sql], values)
      else
        connection.exec_params(sql, values, mode == 'binary' ? 1 : 0)
      end
    if result.ntuples.zero?
      puts '-'
    else
      last = result.getvalue(0, 0)
      puts last.nil? ? 'NULL' : mode == 'binary' ? "\\x#{last.unpack1('H*')}" : last
    end
  rescue PG::Error => e
    raise unless e.result
    fields = [PG::PG_DIAG_SQLSTATE, PG::PG_DIAG_MESSAGE_PRIMARY]
    puts "ERROR #{fields.map { |field| e.result.error_field(field) }.join(' ')}"
  end
end
